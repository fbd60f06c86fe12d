"""The HTTP layer between sockets and routes: connections, limits, middleware, formats and the OpenAPI document."""
