"""What is hidden in texts of a server: what was sent to it and lets us in, and no more than is of use."""

import socket

from mpx.endpoints.web.incoming import HttpIncoming
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.sent_secrets import MOST_NOTED, SentSecrets

BASIC = "Basic YWxpY2U6d29uZGVybGFuZA=="  # alice:wonderland


def test_signatures_of_requests_and_who_signs() -> None:
    """The last of them, as there is another one for each request."""
    secrets = SentSecrets()
    for number in range(200):
        signed = f"AWS4-HMAC-SHA256 Credential=AKIAKEY/2026, Signature=01234567{number:04}"
        secrets.sent({"Authorization": signed, "X-Amz-Security-Token": "a-token-of-a-session"})
    said = f"{signed} a-token-of-a-session 012345670099 012345670100"
    hidden = "AWS4-HMAC-SHA256 Credential=[secret]/2026, Signature=[secret]"
    assert secrets.hidden_in(said) == f"{hidden} [secret] 012345670099 [secret]"


def test_as_many_are_noted_as_answers_may_be_awaited() -> None:
    """Whatever is sent again with each request stays, however many others there are."""
    secrets = SentSecrets()
    for number in range(MOST_NOTED + 1):
        secrets.sent({"Authorization": BASIC}, f"/file?signature=signature-{number:06}")
        secrets.sent({"TransferHeaderAuthorization": f"Bearer token-{number:06}"})
    said = f"wonderland signature-000000 signature-000001 token-000000 token-{MOST_NOTED:06}"
    assert secrets.hidden_in(said) == "[secret] signature-000000 [secret] token-000000 [secret]"


def test_the_reason_of_an_answer_is_looked_at_once_somebody_is_shown_it() -> None:
    """It is read by few, and each answer has one."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 403 no: the-first the-second\r\nContent-Length: 0\r\n\r\n")
        secrets = SentSecrets()
        secrets.sent({"Authorization": "Bearer the-first"})
        incoming = HttpIncoming(ours, "server", 10, lambda: False)
        reply = HttpReply(incoming, "server", "GET", secrets=secrets)
        secrets.sent({"Authorization": "Bearer the-second"})
        assert reply.reason == "no: [secret] [secret]"
