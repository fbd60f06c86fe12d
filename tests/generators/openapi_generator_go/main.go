// Train an MLP with the client that openapi-generator made for Go: loop URL KEY DATA
package main

import (
	"context"
	"encoding/json"
	"os"

	"gradwire.example/loop/generated"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func record(op string, args ...any) generated.OpRecord {
	return generated.OpRecord{ArrayOfAny: &[]any{op, args}}
}

func main() {
	var data struct {
		X, Target any
		Weights   []any
		Lr        float64
		Steps     int
	}
	text, err := os.ReadFile(os.Args[3])
	check(err)
	check(json.Unmarshal(text, &data))
	configuration := generated.NewConfiguration()
	configuration.Servers = generated.ServerConfigurations{{URL: os.Args[1]}}
	client := generated.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), generated.ContextAccessToken, os.Args[2])

	session, _, err := client.SessionsAPI.CreateSession(ctx).SessionRequest(*generated.NewSessionRequest()).Execute()
	check(err)
	for i, values := range append([]any{data.X, data.Target}, data.Weights...) {
		list := values.([]any)
		body := generated.NewTensorBody(generated.Nested{ArrayOfAny: &list})
		put := client.TensorsAPI.PutTensor(ctx, session.Id, int64(i+1)).TensorBody(*body).RequiresGrad(i > 1)
		_, _, err := put.Execute()
		check(err)
	}

	x, target, weights := -1, -2, []int{-3, -4, -5, -6}
	structure := generated.NewStructure([]generated.OpRecord{
		record("linear", x, -3, -4),
		record("relu", 0),
		record("linear", 1, -5, -6),
		record("cross_entropy", 2, target),
		record("backward", []int{3}, []any{nil}),
		record("sgd_step", weights, make([]any, 4), "float"),
		record("zero_grad", weights),
	})
	structure.Reads, structure.Drops = []int64{3}, []int64{0, 1, 2, 3}
	step := generated.NewFrame(*structure)
	step.Scalars = []generated.Nested{{Float64: &data.Lr}}
	step.External = []int64{1, 2, 3, 4, 5, 6}
	losses := []float64{}
	for i := 0; i < data.Steps; i++ {
		reply, _, err := client.FramesAPI.SubmitFrame(ctx, session.Id).Frame(*step).Execute()
		check(err)
		if len(reply.Errors) > 0 {
			panic(reply.Errors[0].Detail)
		}
		losses = append(losses, *reply.Values[0].Values.Float64)
	}
	_, err = client.SessionsAPI.DeleteSession(ctx, session.Id).Execute()
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(losses))
}
