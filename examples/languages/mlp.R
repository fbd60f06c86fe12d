# A digit classifier, trained over HTTP: Rscript mlp.R digits.json
#
# Needs GRADWIRE_URL and GRADWIRE_API_KEY, the file that examples/digits_data.py writes, and the package httr.
library(httr)

epochs <- 5; rows <- 1344; batch <- 64
params <- c("w1", "b1", "w2", "b2")
means <- paste0("mean.", params); squares <- paste0("square.", params)
path <- c(commandArgs(trailingOnly = TRUE), "digits.json")[1]
server <- paste0(Sys.getenv("GRADWIRE_URL"), "/v1/sessions")
key <- add_headers(Authorization = paste("Bearer", Sys.getenv("GRADWIRE_API_KEY")))

post <- function(url, body) {
  response <- POST(url, key, content_type_json(), body = body)
  answer <- content(response, "parsed", "application/json")
  if (http_error(response) || length(answer$errors)) stop(content(response, "text"))
  answer
}

session <- paste0(server, "/", post(server, "{}")$id)
send <- function(ops, reads = list()) {
  frame <- jsonlite::toJSON(list(ops = ops, reads = reads), auto_unbox = TRUE, digits = NA)
  lapply(post(paste0(session, "/frames"), frame)$values, function(value) value$values)
}
record <- function(op, arguments, result = NULL) c(list(op, as.list(arguments)), result)
network <- function(x) list(
  record("linear", c(x, "w1", "b1"), "z"),
  record("relu", "z", "h"),
  record("linear", c("h", "w2", "b2"), "scores"))

train <- function() {
  post(paste0(session, "/frames"), upload_file(path, "application/json"))
  send(c(lapply(params, function(name) record("requires_grad_", name)),
         Map(function(name, of) record("zeros_like", of, name), c(means, squares), c(params, params)) |> unname()))
  step <- 0
  for (epoch in seq_len(epochs)) {
    losses <- sapply(seq(0, rows - batch, batch), function(start) {
      step <<- step + 1
      send(c(
        list(record("narrow", list("train_x", 0, start, batch), "x"),
             record("narrow", list("train_y", 0, start, batch), "y")),
        network("x"),
        list(record("cross_entropy", c("scores", "y"), "loss"),
             record("zero_grad", list(params)),
             record("backward", "loss"),
             list(op = "adam_step", params = params, exp_avgs = means, exp_avg_sqs = squares, lr = 0.01, step = step))),
        reads = list("loss"))[[1]]
    })
    cat(sprintf("epoch %d  loss %.7f\n", epoch, mean(losses)))
  }
  accuracy <- send(c(network("test_x"), list(
    record("argmax", list("scores", 1), "guess"),
    record("eq", c("guess", "test_y"), "right"),
    list(op = "mean", self = "right", dtype = "float32", as = "accuracy"))), reads = list("accuracy"))[[1]]
  cat(sprintf("accuracy %.4f\n", accuracy))
}
tryCatch(train(), finally = DELETE(session, key))
