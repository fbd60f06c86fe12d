"""Who may do what, how fast, and what is written down about it.

``keys`` holds the API keys, ``scopes`` says which of them a route needs, ``tickets`` stand in for a key in a browser's
WebSocket, ``rates`` and ``quotas`` say how much a key may have, ``audit`` records what was done, ``origins`` what web
pages may do. ``entrance`` puts them in front of the application.
"""

from .caller import Caller, caller_of
from .desk import Access
from .entrance import Entrance
from .keys import Key, KeyStore, generate_key
from .scopes import OPEN_PATHS

__all__ = ["OPEN_PATHS", "Access", "Caller", "Entrance", "Key", "KeyStore", "caller_of", "generate_key"]
