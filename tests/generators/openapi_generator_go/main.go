// Train an MLP with the client that openapi-generator made for Go: loop URL KEY DATA
package main

import (
	"context"
	"encoding/json"
	"os"

	"gradwire.example/loop/generated"
)

type arguments = map[string]any

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// record has its arguments by name; its result gets the name as.
func record(op string, args arguments, as ...string) generated.OpRecord {
	named := generated.NewNamedRecord(op)
	named.AdditionalProperties = args
	if len(as) > 0 {
		named.As = &generated.NamedRecordAs{String: &as[0]}
	}
	return generated.OpRecord{NamedRecord: named}
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
	submit := func(frame *generated.Frame) *generated.Reply {
		reply, _, err := client.FramesAPI.SubmitFrame(ctx, session.Id).Frame(*frame).Execute()
		check(err)
		if len(reply.Errors) > 0 {
			panic(reply.Errors[0].Detail)
		}
		return reply
	}

	start := generated.NewFrame()
	weights := []string{"w1", "b1", "w2", "b2"}
	start.Ops = []generated.OpRecord{
		record("upload", arguments{"data": data.X, "dtype": "float32"}, "x"),
		record("upload", arguments{"data": data.Target, "dtype": "int64"}, "target"),
	}
	for i, name := range weights {
		start.Ops = append(start.Ops,
			record("upload", arguments{"data": data.Weights[i], "dtype": "float32"}, name),
			record("requires_grad_", arguments{"self": name}))
	}
	submit(start)

	step := generated.NewFrame()
	step.Ops = []generated.OpRecord{
		record("linear", arguments{"self": "x", "weight": "w1", "bias": "b1"}, "h"),
		record("relu", arguments{"self": "h"}, "a"),
		record("linear", arguments{"self": "a", "weight": "w2", "bias": "b2"}, "scores"),
		record("cross_entropy", arguments{"self": "scores", "target": "target"}, "loss"),
		record("backward", arguments{"tensors": []string{"loss"}}),
		record("sgd_step", arguments{"params": weights, "lr": data.Lr}),
		record("zero_grad", arguments{"params": weights}),
	}
	loss := "loss"
	step.Reads = []generated.Reference{{String: &loss}}
	losses := []float64{}
	for i := 0; i < data.Steps; i++ {
		losses = append(losses, *submit(step).Values[0].Values.Float64)
	}
	_, err = client.SessionsAPI.DeleteSession(ctx, session.Id).Execute()
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(losses))
}
