"""Proximal policy optimization and Q-learning on given transitions: advantages, losses, a buffer."""

import torch
from numpy_numbers import DEVICE, fill, integers, normal, tell, train
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.modules import ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE

net = fill(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4), NormalParamExtractor()))
actor = ProbabilisticActor(
    TensorDictModule(net, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = fill(ValueOperator(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), in_keys=["observation"]), 1)
observations = normal(2, 9, 4)
ends = torch.zeros(2, 8, 1, dtype=torch.bool, device=DEVICE)
ends[:, -1] = True
batch = TensorDict(
    {
        "observation": observations[:, :-1],
        "action": torch.tanh(normal(2, 8, 2, seed=1)),
        "action_log_prob": normal(2, 8, seed=2) * 0.1,
        "next": {
            "observation": observations[:, 1:],
            "reward": normal(2, 8, 1, seed=3),
            "done": ends,
            "terminated": ends,
        },
    },
    batch_size=[2, 8],
)
advantage = GAE(gamma=0.9, lmbda=0.8, value_network=critic)
objective = ClipPPOLoss(actor, critic, entropy_bonus=False)
parts = []


def policy_loss():
    with torch.no_grad():
        advantage(batch)
    found = objective(batch.reshape(-1))
    parts.append({name: found[name].item() for name in ("loss_objective", "loss_critic")})
    return found["loss_objective"] + found["loss_critic"]


losses = train(objective, policy_loss, lr=0.01)

values = fill(
    QValueActor(
        nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)),
        in_keys=["observation"],
        action_space="categorical",
    )
)
learning = DQNLoss(values, action_space="categorical", delay_value=True).to(DEVICE)
learning.make_value_estimator(gamma=0.9)
update = SoftUpdate(learning, eps=0.9)
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(16, device=DEVICE), sampler=SamplerWithoutReplacement(shuffle=False), batch_size=8
)
buffer.extend(TensorDict({**batch.exclude("action").to_dict(), "action": integers(3, 2, 8)}, [2, 8]).reshape(-1))
optimizer = torch.optim.SGD(learning.parameters(), lr=0.05)
further = []
for _ in range(4):
    optimizer.zero_grad()
    loss = learning(buffer.sample())["loss"]
    loss.backward()
    optimizer.step()
    update.step()
    further.append(loss.item())
chosen = values(TensorDict({"observation": observations[0]}, [9]))
tell(
    losses=losses,
    parts=parts,
    advantage=batch["advantage"],
    further=further,
    size=len(buffer),
    actions=chosen["action"],
    values=chosen["action_value"],
)
