"""The python-socketio peer: commands on standard input, reports on standard output, one JSON value a line.

The asyncio client is used, since it starts the handlers of a socket's events in the order in which they came.
"""
import asyncio
import base64
import json
import sys

import socketio
from engineio.payload import Payload

Payload.max_decode_packets = 1000  # the library's default of 16 packets in one polling body is less than a burst brings
RECONNECT = dict(reconnection=True, reconnection_delay=0.05, reconnection_delay_max=0.2, randomization_factor=0)
MAX_LINE = 64 * 1024 * 1024
sockets = {}


def report(**fields):
    sys.stdout.write(json.dumps(fields) + '\n')
    sys.stdout.flush()


def pack(value):
    if isinstance(value, (bytes, bytearray)):
        return {'$binary': base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: pack(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(item) for item in value]
    return value


def unpack(value):
    if isinstance(value, dict):
        if isinstance(value.get('$binary'), str):
            return base64.b64decode(value['$binary'])
        return {key: unpack(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unpack(item) for item in value]
    return value


async def open_socket(command):
    conn, client = command['conn'], socketio.AsyncClient(**RECONNECT)
    sockets[conn] = client

    def tell(event, *args):
        report(conn=conn, event=event, args=pack(args))

    client.on('*', lambda event, *args: tell(event, *args))
    client.on('connect', lambda: tell('$connect', client.get_sid(), client.transport()))
    client.on('disconnect', lambda *reason: tell('$disconnect', *reason))
    client.on('connect_error', lambda *why: tell('$connect_error', str(why)))
    try:
        await client.connect(command['url'], transports=command['transports'])
    except socketio.exceptions.ConnectionError as error:
        tell('$connect_error', str(error))


async def emit(command):
    conn, ack = command['conn'], command.get('ack')
    callback = None if ack is None else lambda *args: report(conn=conn, ack=ack, args=pack(args))
    await sockets[conn].emit(command['event'], tuple(unpack(command['args'])), callback=callback)


async def close(command):
    client = sockets.pop(command['conn'], None)
    if client is not None:
        await client.shutdown()
    report(conn=command['conn'], event='$closed', args=[])


async def main():
    reader = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    opening = set()
    while line := await reader.readline():
        command = json.loads(line)
        if command['do'] == 'open':
            task = asyncio.create_task(open_socket(command))
            opening.add(task)
            task.add_done_callback(opening.discard)
        else:
            await {'emit': emit, 'close': close}[command['do']](command)


asyncio.run(main())
