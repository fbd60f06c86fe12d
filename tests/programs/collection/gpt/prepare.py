import os
import pickle
from pydoc_data.topics import topics

import numpy as np

data = "\n".join(topics[name] for name in sorted(topics))[:60000]
chars = sorted(set(data))
vocab_size = len(chars)
print(f"length of dataset in characters: {len(data):,}, vocab size: {vocab_size:,}")

stoi = {ch: i for i, ch in enumerate(chars)}
itos = {i: ch for i, ch in enumerate(chars)}
n = len(data)
os.makedirs("data", exist_ok=True)
for name, part in (("train", data[: int(n * 0.9)]), ("val", data[int(n * 0.9) :])):
    ids = np.array([stoi[c] for c in part], dtype=np.uint16)
    ids.tofile(os.path.join("data", name + ".bin"))
with open(os.path.join("data", "meta.pkl"), "wb") as f:
    pickle.dump({"vocab_size": vocab_size, "itos": itos, "stoi": stoi}, f)
