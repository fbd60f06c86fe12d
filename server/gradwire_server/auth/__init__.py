"""Authentication, authorization, rate limits, quotas and the audit log.

``keys`` stores API keys, ``scopes`` lists the scope of each route, ``tickets`` replace the key in a browser's WebSocket
handshake, ``passes`` replace it in a worker of a fleet, ``sign_ins`` in the console, ``rates`` and ``quotas`` limit
each key, ``audit`` logs actions, ``origins`` implements CORS. ``auth_middleware`` applies them to every request.
"""

from .access_control import AccessControl
from .auth_middleware import AuthMiddleware
from .caller import Caller, caller_of
from .keys import Key, KeyStore, generate_key
from .scopes import OPEN_PATHS

__all__ = ["OPEN_PATHS", "AccessControl", "Caller", "AuthMiddleware", "Key", "KeyStore", "caller_of", "generate_key"]
