/*
 * A Socket.IO client of any generation, led by commands and reporting all it sees. Runs in Node and in a page;
 * knows nothing of the broker's events. The commands and reports are described in ../../README.md.
 */
(function (root) {
    'use strict';

    var RECONNECT = { reconnection: true, reconnectionDelay: 50, reconnectionDelayMax: 200, randomizationFactor: 0, timeout: 5000 };

    /** `io` is the library's entry, `report` takes an object. Returns the function that takes commands. */
    function createPuppet(io, report) {
        var sockets = {};

        function open(command) {
            var socket = io(command.url, Object.assign({ forceNew: true, transports: command.transports, autoConnect: false }, RECONNECT));
            var tell = function (event, args) { report({ conn: command.conn, event: event, args: pack(args) }); };
            sockets[command.conn] = socket;
            listenToAll(socket, tell);
            socket.on('connect', function () {
                var engine = socket.io.engine;
                engine.on('upgrade', function (transport) { tell('$upgrade', [transport.name]); });
                tell('$connect', [socket.id, engine.transport.name]);
            });
            socket.on('disconnect', function (reason) { tell('$disconnect', [reason]); });
            socket.on('connect_error', function (error) { tell('$connect_error', [String(error && error.message || error)]); });
            socket.open();
        }

        function emit(command) {
            var args = [command.event].concat(unpack(command.args));
            if (command.ack !== undefined)
                args.push(function () {
                    report({ conn: command.conn, ack: command.ack, args: pack(Array.prototype.slice.call(arguments)) });
                });
            var socket = sockets[command.conn];
            socket.emit.apply(socket, args);
        }

        function close(command) {
            if (sockets[command.conn]) sockets[command.conn].close();
            delete sockets[command.conn];
            report({ conn: command.conn, event: '$closed', args: [] });
        }

        var commands = { open: open, emit: emit, close: close };
        return function (command) { commands[command.do](command); };
    }

    /** Clients before 3 have no onAny; what they call for each event is replaced instead. */
    function listenToAll(socket, tell) {
        if (socket.onAny) {
            socket.onAny(function (event) { tell(event, Array.prototype.slice.call(arguments, 1)); });
            return;
        }
        var onevent = socket.onevent;
        socket.onevent = function (packet) {
            tell(packet.data[0], packet.data.slice(1));
            onevent.call(socket, packet);
        };
    }

    function pack(value) {
        if (value instanceof ArrayBuffer) return { $binary: toBase64(new Uint8Array(value)) };
        if (ArrayBuffer.isView(value)) return { $binary: toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)) };
        return walk(value, pack);
    }

    function unpack(value) {
        if (value && typeof value === 'object' && typeof value.$binary === 'string') return fromBase64(value.$binary);
        return walk(value, unpack);
    }

    function walk(value, each) {
        if (Array.isArray(value)) return value.map(each);
        if (!value || typeof value !== 'object') return value;
        var copy = {};
        Object.keys(value).forEach(function (key) {
            Object.defineProperty(copy, key, { value: each(value[key]), enumerable: true, configurable: true, writable: true });
        });
        return copy;
    }

    function toBase64(bytes) {
        var text = '';
        for (var i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i]);
        return btoa(text);
    }

    function fromBase64(text) {
        var raw = atob(text), bytes = new Uint8Array(raw.length);
        for (var i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
        return typeof Buffer === 'undefined' ? bytes.buffer : Buffer.from(bytes);
    }

    if (typeof module === 'object') module.exports = createPuppet;
    else root.createPuppet = createPuppet;
})(typeof self === 'undefined' ? globalThis : self);
