// This script lays out generated texts of two sizes and counts the steps. A step is an executed block of the page's
// modules, or a character that a function of strings or patterns was given. The script prints a line for each text that
// takes too many steps. With the argument "time" it prints the processor time for 200,000 characters of each shape.
// This is the shortest time of five processes that each lay out one text.
import './document.mjs';
import {execFileSync} from 'node:child_process';
import inspector from 'node:inspector';
const {markdown, Flow} = await import('./markdown.js');

// All characters that a builtin function was given count as read.
let read = 0;
const timed = process.argv[2] === 'time';
for (const [proto, names] of timed ? [] : [
	[String.prototype, ['indexOf', 'includes', 'replace', 'replaceAll', 'split', 'search', 'match', 'trim', 'trimStart', 'trimEnd', 'repeat']],
	[RegExp.prototype, ['exec']],
	[Array.prototype, ['join', 'splice', 'flat', 'indexOf']],
]) {
	for (const name of names) {
		const was = proto[name];
		proto[name] = function (...args) {
			const from = this.lastIndex;
			const result = was.apply(this, args);
			if (this instanceof RegExp) read += this.sticky ? 1 : (this.lastIndex || args[0].length) - from; // a splitting pattern is tried at each position
			else if (name === 'indexOf' && proto === String.prototype) read += (result < 0 ? this.length : result) - (args[1] || 0);
			else if (name === 'splice') read += result.length;
			else if (name === 'repeat') read += result.length;
			else read += this.length;
			return result;
		};
	}
}

const session = new inspector.Session();
session.connect();
const post = (method, params) => {
	let got;
	session.post(method, params, (err, result) => { got = result; });
	return got;
};
post('Profiler.enable');
if (!timed) post('Profiler.startPreciseCoverage', {callCount: true, detailed: true});

// steps returns the number of steps of the function f.
function steps(f) {
	post('Profiler.takePreciseCoverage');
	read = 0;
	f();
	const characters = read;
	let n = characters;
	for (const script of post('Profiler.takePreciseCoverage').result) {
		if (!/(markdown|dom|i18n)\.js$/.test(script.url)) continue;
		for (const fn of script.functions) for (const r of fn.ranges) n += r.count;
	}
	return n;
}

// random makes a generator of random numbers with a seed.
function random(seed) {
	return (n) => {
		seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x6d2b79f5 | 0;
		return ((seed ^ seed >>> 13) >>> 0) % n;
	};
}

const atoms = ['[', ']', '](', '](a', '](<a', '](a "', '](a (', ')', '![', '`', '``', '```', '````', '*', '**', '***', '_', '__', '~~', '~~~', '<', '>', '<https://a', 'https://a', 'http://',
	'\\', '\\\\', 'a', 'h', 'a b', ' ', '    ', '\t', '\n', '\n\n', '  \n', '- ', '\n- ', '\n  - ', '\n    - ', '\n1. ', '\n> ', '> > ', '|', '\n|', '|-', '\n|-|-|\n', '\n# ', ' #', '\n```\n', '\n~~~\n', '-', '=', '!', '(', '"', "'", '\u202e', '\r', '\r\n', 'ö', '😀', '**a**', '[a](b)', '`a`', '![a](b)', '[](a', '[](a "b', '![](<a', '[a](b c', '*a', 'a*', '**a_b'];

// shapes has the shapes of the texts. Each shape is a function of the length.
const shapes = {};
for (const a of atoms) shapes['only ' + JSON.stringify(a)] = (n) => a.repeat(n / a.length);
for (let seed = 1; seed <= 20; seed++) {
	const next = random(seed);
	const some = Array.from({length: 1 + next(5)}, () => atoms[next(atoms.length)]);
	shapes['repeated ' + JSON.stringify(some)] = (n) => some.join('').repeat(n / some.join('').length);
	shapes['halves ' + JSON.stringify(some)] = (n) => some.map((a) => a.repeat(n / some.length / a.length)).join('');
	shapes['opened and closed ' + JSON.stringify(some)] = (n) => some.join('').repeat(n / 2 / some.join('').length) + 'x' + some.toReversed().join('').repeat(n / 2 / some.join('').length);
	shapes['mixed ' + JSON.stringify(some)] = (n) => {
		const one = random(seed * 7919);
		let text = '';
		while (text.length < n) text += some[one(some.length)];
		return text;
	};
	shapes['all mixed ' + seed] = (n) => {
		const one = random(seed * 104729);
		let text = '';
		while (text.length < n) text += atoms[one(atoms.length)];
		return text;
	};
}
shapes['code spans in brackets'] = (n) => '[' + '`a`, '.repeat(n / 5) + '] b';
shapes['a wide table with many short rows'] = (n) => '|a'.repeat(n / 6) + '\n' + '|-'.repeat(n / 6) + '\n' + '|\n'.repeat(n / 6);
shapes['runs of all lengths'] = (n) => Array.from({length: Math.sqrt(2 * n)}, (_, i) => '`'.repeat(i)).join(' ');
shapes['runs of all lengths, falling'] = (n) => Array.from({length: Math.sqrt(2 * n)}, (_, i) => '`'.repeat(i)).toReversed().join(' ');

// These shapes have deep nesting and long lines, which random texts rarely have.
const deep = (n, open, close) => open.repeat(n / 2 / open.length) + 'a' + close.repeat(n / 2 / close.length);
Object.assign(shapes, {
	'links to images in images': (n) => '!['.repeat(n / 6) + 'a' + '](b)'.repeat(n / 6),
	'brackets before links': (n) => deep(n, '[', '](b)'),
	'emphasis in emphasis': (n) => deep(n, '*a **b ', ' b** a*'),
	'quotes in lists': (n) => '> - > - > - > - a\n'.repeat(n / 18),
	'rising quotes': (n) => Array.from({length: Math.sqrt(n)}, (_, i) => '> '.repeat(i) + 'a').join('\n'),
	'rising lists': (n) => Array.from({length: Math.sqrt(2 * n)}, (_, i) => ' '.repeat(i) + '- a').join('\n'),
	'a table': (n) => '|a|b|\n|-|-|\n' + '|c|d|\n'.repeat(n / 6),
	'escaped pipes': (n) => ('|' + '\\|'.repeat(100) + '|\n').repeat(n / 203),
	'code spans of all lengths that close': (n) => Array.from({length: Math.sqrt(n)}, (_, i) => '`'.repeat(i)).join(' ') + ' x ' + Array.from({length: Math.sqrt(n)}, (_, i) => '`'.repeat(i)).toReversed().join(' '),
	'entities': (n) => '&amp;&#x41;&#0;&nosuch;&'.repeat(n / 24),
	'addresses': (n) => '<https://a.b/c> https://a.b '.repeat(n / 28),
	'an address that marks end': (n) => 'https://a' + '.'.repeat(n),
	'reference definitions': (n) => '[a]: https://a "t"\n[a][b] '.repeat(n / 26),
	'one word': (n) => 'a'.repeat(n),
	'lines that end with CRLF': (n) => '- a\r\n> b\r\n\r\n'.repeat(n / 12),
	'combining characters': (n) => '*\u0301_\u0302a\u0301'.repeat(n / 6),
	'characters that nobody sees': (n) => '\u202e\u2066\0\x1b'.repeat(n / 4),
	'halves of characters': (n) => '\ud800a'.repeat(n / 2),
	'rules and almost rules': (n) => ('* '.repeat(100) + 'a\n* * *\n').repeat(n / 208),
	'blank lines in lists': (n) => '- a\n\n\n\n  b\n'.repeat(n / 11),
	'tasks': (n) => '- [ ] a\n'.repeat(n / 8),
	'nested lists': (n) => '- a\n  - b\n    - c\n'.repeat(n / 18),
	'cells with forms': (n) => '|a|b|\n|-|-|\n' + '|`c`|**d**|\n'.repeat(n / 12),
	'many small tables': (n) => 'a|b\n-|-\n1|2\n\n'.repeat(n / 13),
	'a head of many cells': (n) => '|a'.repeat(n / 4) + '\n' + '|-'.repeat(n / 4),
	'short quotes': (n) => '> a\n\n'.repeat(n / 5),
	'headings and rules': (n) => '# a\n---\n'.repeat(n / 8),
	'lines that break': (n) => 'a  \n'.repeat(n / 4),
	'images': (n) => '![a](https://b.c/d) '.repeat(n / 20),
	'code with languages': (n) => '~~~go\na\n~~~\n'.repeat(n / 12),
	'code that nobody closes': (n) => '```\n' + 'a\n'.repeat(n / 2),
	'addresses of one letter': (n) => 'http://a '.repeat(n / 9),
	'addresses that no browser reads': (n) => '[a](https://[::1) https://[ '.repeat(n / 27),
});

const ways = {
	whole: (text) => markdown(text),
	pieces: (text) => {
		const f = new Flow();
		for (let i = 0; i < text.length; i += 500) f.add(text.slice(i, i + 500));
		f.end();
		return f.el;
	},
};

// count returns the number of elements in an element.
function count(el) {
	let n = 0;
	for (const todo = [el]; todo.length; n++) for (const c of todo.pop().children) if (c.name) todo.push(c);
	return n;
}
if (timed) {
	// A process lays out one text, which is its first one. The load is the time of all its threads.
	const load = (name) => {
		const text = shapes[name](200_000);
		const from = process.cpuUsage();
		markdown(text);
		const {user, system} = process.cpuUsage(from);
		return Math.round((user + system) / 1000);
	};
	if (process.argv[3]) console.log(load(process.argv[3]));
	else {
		const least = (name) => Math.min(...Array.from({length: 5}, () => +execFileSync(process.argv[0], [process.argv[1], 'time', name])));
		for (const [ms, name] of Object.keys(shapes).map((name) => [least(name), name]).toSorted((a, b) => b[0] - a[0])) console.log(ms + ' ms for 200,000 characters: ' + name);
	}
	process.exit();
}
// most returns the largest accepted number of steps for each character, by the size of the text.
const most = {whole: 150, pieces: 1600};
let worst = 0;
for (const [shape, make] of Object.entries(shapes)) {
	for (const [way, lay] of Object.entries(ways)) {
		const [one, two] = [make(6_000), make(24_000)];
		const [a, b] = [steps(() => lay(one)) / one.length, steps(() => lay(two)) / two.length];
		worst = Math.max(worst, b / most[way]);
		if (b > most[way] || b > 4 * a + 10) console.log('FAULT ' + way + ': ' + Math.round(a) + ' steps a character at ' + one.length + ', ' + Math.round(b) + ' at ' + two.length + ': ' + shape);
	}
}
// A text never gets more elements than the limit, in any number of pieces.
post('Profiler.stopPreciseCoverage');
const mostElements = 9_000;
let elements = 0;
for (const [shape, make] of Object.entries(shapes)) {
	const text = make(60_000);
	for (const [way, lay] of Object.entries(ways)) {
		const el = lay(text);
		const n = count(el);
		elements = Math.max(elements, n);
		if (n > mostElements) console.log('FAULT ' + way + ': ' + n + ' elements: ' + shape);
	}
}
console.log(Object.keys(shapes).length + ' shapes, the worst took ' + Math.round(100 * worst) + ' % of the steps that it may take; at most ' + elements + ' elements');
