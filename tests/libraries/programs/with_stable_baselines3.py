"""Deep Q-learning in a small world, whose random numbers are NumPy's; the evaluated policy, on disk and back."""

import tempfile

import gymnasium
import numpy as np
import torch
from numpy_numbers import DEVICE, fill, tell
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure


class Line(gymnasium.Env):
    """Walk along a line to its middle."""

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def _seen(self):
        return np.array([self.place, self.steps / 10], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        self.starts = getattr(self, "starts", -1) + 1
        self.place, self.steps = 1.5 - 0.5 * (self.starts % 7), 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        self.place = float(np.clip(self.place + 0.3 * (int(action) - 1), -2, 2))
        return self._seen(), -abs(self.place), False, self.steps == 10, {}


Line.action_space.seed(0)
model = DQN(
    "MlpPolicy",
    Line(),
    learning_rate=1e-2,
    buffer_size=200,
    learning_starts=16,
    batch_size=16,
    train_freq=4,
    target_update_interval=20,
    seed=0,
    policy_kwargs={"net_arch": [16], "optimizer_class": torch.optim.SGD},
    device=DEVICE,
)
fill(model.q_net)
model.q_net_target.load_state_dict(model.q_net.state_dict())
model.learn(80)
model.set_logger(configure(None, []))
losses = []
for _ in range(4):
    model.train(gradient_steps=1, batch_size=16)
    losses.append(float(model.logger.name_to_value["train/loss"]))
reward, spread = evaluate_policy(model, Line(), n_eval_episodes=3, warn=False)
seen = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model")
    loaded = DQN.load(f"{folder}/model", device=DEVICE)
actions = loaded.predict(seen, deterministic=True)[0]
ppo = PPO("MlpPolicy", Line(), n_steps=16, batch_size=16, n_epochs=1, device=DEVICE, policy_kwargs={"net_arch": [8]})
fill(ppo.policy)
ppo.learn(16)
tell(
    losses=losses,
    reward=float(reward),
    spread=float(spread),
    actions=actions,
    same=bool((actions == model.predict(seen, deterministic=True)[0]).all()),
    values=model.q_net(torch.from_numpy(seen).to(DEVICE)),
    updates=ppo._n_updates,
)
