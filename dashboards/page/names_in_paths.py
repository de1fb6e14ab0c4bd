"""Names with a slash in paths."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.page import interface


class NamesInPaths:
    """Middleware that keeps a cluster's name with a slash as one part of the path for routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application."""
        if scope["type"] == "http" and scope["path"].startswith(("/clusters/", f"{interface.API}/clusters/")):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)
