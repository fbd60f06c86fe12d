# A digit classifier, trained over HTTP: ruby mlp.rb digits.json
#
# Needs GRADWIRE_URL and GRADWIRE_API_KEY, and the file that examples/digits_data.py writes.
require "json"
require "net/http"

EPOCHS, ROWS, BATCH = 5, 1344, 64
PARAMS = %w[w1 b1 w2 b2]
MEANS, SQUARES = %w[mean square].map { |kind| PARAMS.map { |name| "#{kind}.#{name}" } }
SERVER = URI(ENV.fetch("GRADWIRE_URL"))
HEADERS = { "Authorization" => "Bearer #{ENV.fetch("GRADWIRE_API_KEY")}", "Content-Type" => "application/json" }

def network(x)
  [["linear", [x, "w1", "b1"], "z"], ["relu", ["z"], "h"], ["linear", ["h", "w2", "b2"], "scores"]]
end

def post(http, path, body)
  response = http.post(path, body, HEADERS)
  answer = JSON.parse(response.body)
  abort response.body unless response.is_a?(Net::HTTPSuccess) && !answer.key?("errors")
  answer
end

Net::HTTP.start(SERVER.host, SERVER.port, use_ssl: SERVER.scheme == "https") do |http|
  session = "/v1/sessions/" + post(http, "/v1/sessions", "{}")["id"]
  send_frame = ->(*ops, reads: []) do
    post(http, "#{session}/frames", { ops:, reads: }.to_json).fetch("values", []).map { |value| value["values"] }
  end

  post(http, "#{session}/frames", File.read(ARGV.fetch(0, "digits.json")))
  send_frame.(*PARAMS.map { |name| ["requires_grad_", [name]] },
              *(MEANS + SQUARES).map { |name| ["zeros_like", [name.split(".")[1]], name] })

  (1..EPOCHS).each do |epoch|
    losses = (0...ROWS).step(BATCH).map.with_index(1 + (epoch - 1) * (ROWS / BATCH)) do |start, step|
      send_frame.(
        ["narrow", ["train_x", 0, start, BATCH], "x"],
        ["narrow", ["train_y", 0, start, BATCH], "y"],
        *network("x"),
        ["cross_entropy", ["scores", "y"], "loss"],
        ["zero_grad", [PARAMS]],
        ["backward", ["loss"]],
        { op: "adam_step", params: PARAMS, exp_avgs: MEANS, exp_avg_sqs: SQUARES, lr: 0.01, step: },
        reads: ["loss"]
      ).first
    end
    puts format("epoch %d  loss %.7f", epoch, losses.sum / losses.size)
  end

  accuracy, = send_frame.(*network("test_x"), ["argmax", ["scores", 1], "guess"], ["eq", ["guess", "test_y"], "right"],
                          { op: "mean", self: "right", dtype: "float32", as: "accuracy" }, reads: ["accuracy"])
  puts format("accuracy %.4f", accuracy)
ensure
  http.delete(session, HEADERS) if session
end
