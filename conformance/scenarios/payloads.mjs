// What has to arrive as it was sent.

import { binary } from '../lib/values.mjs';

const BYTES = Array.from({ length: 256 }, (_, i) => i);

export const PAYLOADS = {
    unicode: ['héllo ☃ 日本語 😀 \0 \u2028 "q" \\ /', '\u{10ffff}\u007f\u0080\ufeff', { 'ключ 🔑': 'значение' }],
    'lone-surrogate': ['x\ud800y', { '\udc00': 1 }],
    nested: [{ a: { b: [1, [2, { c: [] }], { d: { e: null } }] }, z: '', 'y-first': { y: 1, x: 2 } }, [[[[[[[[[[]]]]]]]]]], { __proto__x: {}, constructor: 1, 2: 'b', 1: 'a' }],
    null: [null],
    empty: ['', {}, [], [null, '', 0, false, {}, []]],
    numbers: [0, 1, -1, 0.1, -1.5e-7, 1e21, 1.2345678901234568e22, 9007199254740991, -9007199254740991, true, false],
    'json-like-strings': ['{"a":1}', '[1,2]', '1e21', 'true', 'null', '"quoted"', '{"_placeholder":true,"num":0}', '42["PRODUCE",{}]'],
    binary: [binary(0, 1, 2, 255), binary(), { one: binary(1), list: [binary(2, 2), 'text', binary(3)] }, binary(...BYTES)],
};

export const LARGE = {
    '1mb': '0123456789abcdef'.repeat(65536),
    '1mb-unicode': '日本語☃'.repeat(90000),
    '1mb-object': { list: Array.from({ length: 20000 }, (_, i) => ({ i, text: `row "${i}" \\ ☃` })) },
    'emoji-even': '😀'.repeat(140000),
    'emoji-odd': 'x' + '😀'.repeat(140000),
};

/** JSON text whose spelling has to survive, read by nobody on the way. */
export const SPELLINGS = ['12345678901234567890123', '9007199254740993', '1.0', '0.10', '-0', '1e400', '1E+2', '{"b":1,"a":2,"10":3,"2":4,"a":5}', '"\\u0041\\/\\ud83d\\ude00"', '{"__proto__":{"x":1}}'];
