"""A mail server for tests: prints its port, then each mail in a line of JSON."""

import asyncio
import json
from email import message_from_bytes

from aiosmtpd.smtp import SMTP


class Handler:
    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content)
        text = next(part for part in mail.walk() if part.get_content_type() == "text/plain")
        said = {
            "to": envelope.rcpt_tos,
            "from": envelope.mail_from,
            "subject": mail["Subject"],
            "id": mail["Message-ID"],
            "text": text.get_payload(decode=True).decode(),
            "parts": [part.get_content_type() for part in mail.walk() if not part.is_multipart()],
        }
        print(json.dumps(said), flush=True)
        return "250 OK"


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler()), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
