"""/login and /logout: a form that takes the access token and starts a session."""

from __future__ import annotations

import html

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from recrawl.serve.access.security import checked_form, csrf_token, session_cookie, token_matches
from recrawl.serve.context import Context

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in - recrawl</title><link rel="stylesheet" href="/static/recrawl.css"></head>
<body class="login"><main><h1>recrawl</h1>
<form method="post" action="/login"><input type="hidden" name="csrf" value="{csrf}">
<input type="hidden" name="next" value="{next}">
<label for="token">Access token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus{invalid}>
{message}<button>Log in</button></form></main></body></html>"""


def routes(context: Context) -> list[Route]:
    """/login and /logout."""

    def page(request: Request, message: str = "", status: int = 200) -> Response:
        after = html.escape(local_path(request.query_params.get("next", "/")))
        error = f'<p id="wrong" role="alert">{html.escape(message)}</p>' if message else ""
        invalid = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
        text = _PAGE.format(csrf=csrf_token(request, context), next=after, message=error, invalid=invalid)
        return HTMLResponse(text, status)

    async def show(request: Request) -> Response:
        return page(request)

    async def log_in(request: Request) -> Response:
        form = await checked_form(request, context)
        client = request.client.host if request.client else ""
        if not context.token or not token_matches(
            context, request.scope["recrawl.wrong_tokens"], client, str(form.get("token"))
        ):
            return page(request, "Wrong access token.", 403)
        return _redirect(context, request, local_path(str(form.get("next", "/"))), authenticated=True)

    async def log_out(request: Request) -> Response:
        await checked_form(request, context)
        session = request.scope["recrawl.session"]
        if session.authenticated:
            await run_in_threadpool(context.logged_out.add, session, context.clock())
            context.events.end(session.name)
        return _redirect(context, request, "/login", authenticated=False)

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", log_in, methods=["POST"]),
        Route("/logout", log_out, methods=["POST"]),
    ]


def _redirect(context: Context, request: Request, path: str, *, authenticated: bool) -> Response:
    """Redirect with the cookie of a new session."""
    cookie = session_cookie(context, authenticated=authenticated, secure=request.url.scheme == "https")
    return RedirectResponse(path, 303, {"set-cookie": cookie})


def local_path(path: str) -> str:
    """Return the path if it stays on this server, else "/".

    >>> local_path("/pages"), local_path("//evil.example/"), local_path("https://evil.example/")
    ('/pages', '/', '/')
    """
    good = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if good else "/"
