"""What stands between a socket and the routes: connections, requests as a whole, errors and the document of the API."""
