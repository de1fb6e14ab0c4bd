"""Names with a slash in paths."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from dashboards.page import interface


class NamesInPaths:
    """Lets routes see the paths that name a cluster as they were asked for: a name with a slash in it is one part."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application's answer."""
        if scope["type"] == "http" and scope["path"].startswith(("/clusters/", f"{interface.API}/clusters/")):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)
