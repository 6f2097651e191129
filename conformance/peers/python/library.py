"""The tyo-mq-client peer: the broker's published Python library, led through its own functions.

The library delivers each event on a thread of its own, so reports of different messages may come in any order.
"""
import json
import os
import sys
import threading
from urllib.parse import urlparse

from tyo_mq_client.logger import Logger
from tyo_mq_client.message_queue import MessageQueue

connections = {}
writing = threading.Lock()


class Quiet(Logger):
    """The library's log, silenced: standard output carries the reports."""

    def __init__(self):
        super().__init__('conformance')

    def log(self, *args, **kwargs):
        pass

    error = warn = trace = debug = info = log


def report(conn, event, *args):
    with writing:
        sys.stdout.write(json.dumps({'conn': conn, 'event': event, 'args': args}) + '\n')
        sys.stdout.flush()


def create(command, kind):
    conn, url = command['conn'], urlparse(command['url'])
    queue = MessageQueue(url.hostname, url.port, url.scheme, Quiet(), command.get('auth'))
    client = queue.createConsumer(command['name']) if kind == 'consumer' else queue.createProducer(command['name'])
    connections[conn] = client
    if command.get('auth'):  # the library says that it is connected when it has been admitted, and tells refusals as errors
        client.add_on_connect_listener(lambda: admitted(conn, client))
        client.on_error_listener = lambda error: report(conn, 'AUTH_FAIL', error)
        client.connect()
        return
    client.connect()
    report(conn, '$connect', client.get_id(), 'websocket')


def admitted(conn, client):
    report(conn, 'AUTH_OK', client.auth_info)
    report(conn, '$connect', client.get_id(), 'websocket')


def handler(conn, tag):
    def receive(message, producer=None, ack=None, raw=None):
        report(conn, '$message', tag, message, producer, raw)
    return receive


def subscribe(command):
    client, receive = connections[command['conn']], handler(command['conn'], command['tag'])
    options = command.get('options') or None
    if command.get('topic'):
        client.subscribe_topic(command['event'], receive, options=options)
    else:
        client.subscribe(command['producer'], command['event'], receive, options=options)


def produce(command):
    client = connections[command['conn']]
    client.produce(command['message'], command['event'], options=command.get('options') or None)


def broadcast(command):
    connections[command['conn']].broadcast(command['message'], command['event'], group=command.get('group'))


def listen(command):
    conn, event = command['conn'], command['event']
    connections[conn].on(event, lambda *args: report(conn, event, *args))


def send(command):
    connections[command['conn']].send_message(command['event'], command['args'][0])


def close(command):
    client = connections.pop(command['conn'], None)
    if client is not None:
        client.disconnect()
    report(command['conn'], '$closed')


COMMANDS = {'consumer': lambda c: create(c, 'consumer'), 'producer': lambda c: create(c, 'producer'), 'subscribe': subscribe,
            'produce': produce, 'broadcast': broadcast, 'listen': listen, 'send': send, 'close': close}

for line in sys.stdin:
    request = json.loads(line)
    try:
        COMMANDS[request['do']](request)
    except Exception as error:  # whatever the library raises is what the scenario gets to see
        report(request.get('conn'), '$failed', '%s: %s' % (type(error).__name__, error))
os._exit(0)
