"""The HTTP API: `server.serve` runs it, `app.create_app` is it. Nothing is re-exported, so that options load alone."""
