// A digit classifier, trained over HTTP: go run mlp.go digits.json
//
// Needs GRADWIRE_URL and GRADWIRE_API_KEY, and the file that examples/digits_data.py writes.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

const epochs, rows, batch = 5, 1344, 64

// A list is a record, [op, arguments, result], or its arguments. A named record has its arguments by name.
type list = []any
type named = map[string]any

// answer has what this program needs of a session and of a reply to a frame.
type answer struct {
	ID     string
	Values []struct{ Values float64 }
	Errors []struct{ Op, Detail string }
}

// request sends a body and decodes the answer.
func request(method, path string, body []byte) (found answer, err error) {
	request, err := http.NewRequest(method, os.Getenv("GRADWIRE_URL")+path, bytes.NewReader(body))
	if err != nil {
		return found, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("GRADWIRE_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &found)
	}
	if err == nil && len(found.Errors) > 0 {
		err = fmt.Errorf("%s: %s", found.Errors[0].Op, found.Errors[0].Detail)
	}
	return found, err
}

// A session applies frames until one fails; err is why.
type session struct {
	path string
	err  error
}

// apply sends a frame and returns the first value that it reads.
func (s *session) apply(frame []byte) float64 {
	if s.err != nil {
		return 0
	}
	var reply answer
	if reply, s.err = request("POST", s.path+"/frames", frame); len(reply.Values) == 0 {
		return 0
	}
	return reply.Values[0].Values
}

func (s *session) run(ops list, reads ...string) float64 {
	frame, err := json.Marshal(named{"ops": ops, "reads": append([]string{}, reads...)})
	if err != nil && s.err == nil {
		s.err = err
	}
	return s.apply(frame)
}

func network(x string) list {
	return list{
		list{"linear", list{x, "w1", "b1"}, "z"},
		list{"relu", list{"z"}, "h"},
		list{"linear", list{"h", "w2", "b2"}, "scores"},
	}
}

func train(s *session, data []byte) {
	s.apply(data)
	params := []string{"w1", "b1", "w2", "b2"}
	var means, squares []string
	var setup list
	for _, name := range params {
		mean, square := "mean."+name, "square."+name
		means, squares = append(means, mean), append(squares, square)
		setup = append(setup, list{"requires_grad_", list{name}},
			list{"zeros_like", list{name}, mean}, list{"zeros_like", list{name}, square})
	}
	s.run(setup)
	for epoch, step := 1, 0; epoch <= epochs; epoch++ {
		total := 0.0
		for start := 0; start < rows; start += batch {
			step++
			total += s.run(append(append(list{
				list{"narrow", list{"train_x", 0, start, batch}, "x"},
				list{"narrow", list{"train_y", 0, start, batch}, "y"}},
				network("x")...),
				list{"cross_entropy", list{"scores", "y"}, "loss"},
				list{"zero_grad", list{params}},
				list{"backward", list{"loss"}},
				named{"op": "adam_step", "params": params, "exp_avgs": means, "exp_avg_sqs": squares,
					"lr": 0.01, "step": step},
			), "loss")
		}
		if s.err != nil {
			return
		}
		fmt.Printf("epoch %d  loss %.7f\n", epoch, total/(rows/batch))
	}
	accuracy := s.run(append(network("test_x"),
		list{"argmax", list{"scores", 1}, "guess"},
		list{"eq", list{"guess", "test_y"}, "right"},
		named{"op": "mean", "self": "right", "dtype": "float32", "as": "accuracy"},
	), "accuracy")
	if s.err == nil {
		fmt.Printf("accuracy %.4f\n", accuracy)
	}
}

func main() {
	data, err := os.ReadFile(append(os.Args, "digits.json")[1])
	if err != nil {
		log.Fatal(err)
	}
	created, err := request("POST", "/v1/sessions", []byte("{}"))
	if err != nil {
		log.Fatal(err)
	}
	s := session{path: "/v1/sessions/" + created.ID}
	train(&s, data)
	if _, err := request("DELETE", s.path, nil); s.err == nil {
		s.err = err
	}
	if s.err != nil {
		log.Fatal(s.err)
	}
}
