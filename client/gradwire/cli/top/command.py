"""``gradwire top``: the command line, the loop and what keys do."""

from __future__ import annotations

import signal
import sys
import time
from typing import Annotated, Any, Final

import typer
from rich.console import Console, Group
from rich.live import Live

from ..asking import DEFAULT_URL, ApiKey, Json, Url, checked_url, fail, request
from ..doctor.address import shown
from ..printing import print_json
from .feed import SNAPSHOT, Activity, Feed
from .keyboard import pressed, single_keys
from .rows import ORDERS, Order
from .screen import View, screen, whole

LOOK_EVERY_S: Final = 0.2
FIRST_S: Final = 15.0
"""How long the first report may take."""


def top(
    url: Url = DEFAULT_URL,
    api_key: ApiKey = "",
    sort: Annotated[Order, typer.Option(help="Order of the sessions.")] = Order.MEMORY,
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit. Default without a terminal.")] = False,
    json: Json = False,
) -> None:
    """Show what a server does: sessions, memory, rates, plan hits, queue, devices. q quits, ? shows the keys.

    A key with the scope admin sees the sessions of all tenants, other keys those of their own. With --json it prints
    one report as the server gives it.
    """
    if json:
        print_json(request(url, api_key, "GET", SNAPSHOT))
        return
    view = View(order=sort, backwards=reverse)
    console = Console()
    if once or not console.is_terminal:
        activity: Activity = request(url, api_key, "GET", SNAPSHOT)
        for line in whole(activity, shown(url), view, console.width):
            console.print(line, no_wrap=True, crop=False)
        return
    _watch(url, api_key, view, console)


def _watch(url: str, api_key: str, view: View, console: Console) -> None:
    checked_url(url)
    feed = Feed(url, api_key)
    before = signal.signal(signal.SIGTERM, _end)
    feed.start()
    try:
        if not feed.news.wait(FIRST_S) or feed.activity is None:
            _give_up(feed)
        with single_keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
            _loop(feed, view, shown(url), console, live, keys)
    except KeyboardInterrupt:
        pass
    finally:
        feed.close()
        signal.signal(signal.SIGTERM, before)
    if feed.refusal is not None:
        fail(feed.refusal)


def _end(*_: Any) -> None:
    """Leave the terminal as it was."""
    sys.exit(128 + signal.SIGTERM)


def _give_up(feed: Feed) -> None:
    if feed.refusal is not None:
        fail(feed.refusal)
    why = feed.trouble.split("; trying again")[0] or f"no report within {FIRST_S:g} s"
    typer.echo(f"{why}; gradwire doctor checks the way to the server", err=True)
    raise typer.Exit(1)


def _loop(feed: Feed, view: View, url: str, console: Console, live: Live, keys: bool) -> None:
    activity = feed.activity
    feed.news.set()
    size = console.size
    while feed.refusal is None:
        changed = feed.news.is_set() or console.size != size
        if changed:
            feed.news.clear()
            size = console.size
            activity = activity if view.paused else feed.activity
            lines = screen(activity, feed.trouble, url, view, size.width, size.height)
            live.update(Group(*lines), refresh=True)
        if not keys:
            time.sleep(LOOK_EVERY_S)
            continue
        for key in pressed(LOOK_EVERY_S):
            if key in ("q", "Q", "escape", "eof"):
                return
            press(key, view, page=max(1, size.height - 12))
            feed.news.set()


def press(key: str, view: View, page: int) -> None:
    """Do what a key says; keys without a meaning do nothing."""
    orders = list(ORDERS)
    if key == "?":
        view.helping = not view.helping
    elif key == "s":
        view.order = orders[(orders.index(view.order) + 1) % len(orders)]
    elif key == "r":
        view.backwards = not view.backwards
    elif key == "space":
        view.paused = not view.paused
    elif key in (moves := {"up": -1, "down": 1, "pageup": -page, "pagedown": page}):
        view.top = max(0, view.top + moves[key])
    elif key == "home":
        view.top = 0
    else:
        view.order = next((name for name, (letter, _, _) in ORDERS.items() if letter == key), view.order)
