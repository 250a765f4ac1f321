// This module shows a change to a file, line by line.
import {h} from './dom.js';
import {t} from './i18n.js';

// most limits the number of compared pairs of lines. A larger change is shown as all old lines and all new lines.
const most = 4e6;
const around = 3; // number of unchanged lines shown on each side of a change

const all = (lines, sign) => lines.map((text) => ({sign, text}));

// compare returns the lines of both texts with their signs.
export function compare(before, after) {
	const a = before ? before.replace(/\n$/, '').split('\n') : [];
	const b = after ? after.replace(/\n$/, '').split('\n') : [];
	let head = 0;
	while (head < a.length && head < b.length && a[head] === b[head]) head++;
	let tail = 0;
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
	return [
		...all(a.slice(0, head), ' '),
		...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
		...all(a.slice(a.length - tail), ' '),
	];
}

// middle compares two lists of lines by their longest common subsequence.
function middle(a, b) {
	if (!a.length || !b.length || a.length * b.length > most) return [...all(a, '-'), ...all(b, '+')];
	const width = b.length + 1;
	const long = new Uint32Array((a.length + 1) * width);
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) {
			long[i * width + j] = a[i] === b[j] ? long[(i + 1) * width + j + 1] + 1 : Math.max(long[(i + 1) * width + j], long[i * width + j + 1]);
		}
	}
	const out = [];
	let i = 0;
	let j = 0;
	while (i < a.length || j < b.length) {
		if (i < a.length && j < b.length && a[i] === b[j]) {
			out.push({sign: ' ', text: a[i++]});
			j++;
		} else if (j >= b.length || i < a.length && long[(i + 1) * width + j] >= long[i * width + j + 1]) out.push({sign: '-', text: a[i++]});
		else out.push({sign: '+', text: b[j++]});
	}
	return out;
}

const kinds = {'+': 'added', '-': 'removed', ' ': 'same'};

// line shows a line of a diff. Its sign is also text, for people who do not see the colours.
export const line = (sign, text) => h('div', {class: 'line ' + kinds[sign], dir: 'ltr'}, h('span.sign', sign), h('span.said', {dir: 'auto'}, text || ' '));

// diff shows a change to a file. It leaves out most unchanged lines.
export function diff(path, before, after) {
	const lines = compare(before || '', after || '');
	const near = new Uint8Array(lines.length);
	lines.forEach((l, i) => {
		if (l.sign !== ' ') near.fill(1, Math.max(0, i - around), i + around + 1);
	});
	const body = h('div.lines');
	for (let i = 0; i < lines.length;) {
		if (near[i]) {
			body.append(line(lines[i].sign, lines[i].text));
			i++;
			continue;
		}
		let n = i;
		while (n < lines.length && !near[n]) n++;
		body.append(h('div.line.skipped', t('diff.same', {n: n - i})));
		i = n;
	}
	const count = (sign) => lines.filter((l) => l.sign === sign).length;
	return h('figure.diff', h('figcaption', h('bdi.path.said', {dir: 'ltr'}, path),
		h('span.plus', '+' + count('+')), h('span.minus', '−' + count('-'))), body);
}
