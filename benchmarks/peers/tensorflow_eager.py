"""TensorFlow's remote eager execution: a worker over gRPC, ops placed on its device one by one."""

from __future__ import annotations

import os
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

import tensorflow as tf
from talk import LINKS, Beside, answer, arguments, data

DEVICE = "/job:worker/replica:0/task:0/device:CPU:0"


def measure(relay: str) -> None:
    beside = Beside()
    try:
        port = beside.relay(relay, beside.serve())
        tf.config.experimental_connect_to_host(f"127.0.0.1:{port}", job_name="worker")
        with tf.device(DEVICE):
            x, w = (tf.Variable(array) for array in data())

            def step() -> Any:
                with tf.GradientTape() as tape:
                    h = x
                    for _ in range(LINKS):
                        h = tf.nn.relu(h @ w)
                    mean = tf.reduce_mean(h)
                return tape.gradient(mean, x)

            whole = tf.function(step)
            forms = {"op by op": lambda: step().numpy(), "tf.function": lambda: whole().numpy()}
            for form in forms.values():
                form()
            answer(f"tensorflow {tf.__version__}", forms)
    finally:
        beside.end()


def serve(port: int) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{port}"]})
    tf.distribute.Server(cluster, job_name="worker", task_index=0).join()


if __name__ == "__main__":
    given = arguments()
    if given.role == "serve":
        serve(given.port)
    else:
        measure(given.relay)
