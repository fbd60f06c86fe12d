"""What stands here for gym's CartPole: a pole on a cart that is pushed left or right."""

import math

import numpy as np


class Space:
    def __init__(self, n):
        self.n = n


class CartPole:
    gravity, cart, pole, half, force, tau = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self):
        self.action_space = Space(2)
        self.random = np.random.default_rng()

    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.state = self.random.uniform(-0.05, 0.05, 4)
        self.steps = 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        assert action in (0, 1), action
        x, x_dot, theta, theta_dot = self.state
        force = self.force if action == 1 else -self.force
        total = self.cart + self.pole
        push = (force + self.pole * self.half * theta_dot**2 * math.sin(theta)) / total
        theta_acc = (self.gravity * math.sin(theta) - math.cos(theta) * push) / (
            self.half * (4.0 / 3.0 - self.pole * math.cos(theta) ** 2 / total)
        )
        x_acc = push - self.pole * self.half * theta_acc * math.cos(theta) / total
        self.state = self.state + self.tau * np.array([x_dot, x_acc, theta_dot, theta_acc])
        self.steps += 1
        terminated = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * 2 * math.pi / 360)
        return self.state.astype(np.float32), 1.0, terminated, self.steps >= 500, {}
