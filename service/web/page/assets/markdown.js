// Markdown of an agent's, as elements with text nodes. HTML in it is text; a link leads to http,
// https or mailto only and shows its host; an image is a link to it.
import {h, icon, visible, wide} from './dom.js';
import {t} from './i18n.js';

// link is a link with its host beside it, or the text with its address as it is written.
export function link(children, address) {
	let url;
	try {
		url = new URL(address.trim());
	} catch { /* no absolute address */ }
	if (!url || !['http:', 'https:', 'mailto:'].includes(url.protocol)) {
		return [...children, h('span.address', ' (' + address + ')')];
	}
	const host = url.protocol === 'mailto:' ? url.pathname : url.host;
	const a = h('a', {href: url.href, rel: 'noopener noreferrer nofollow', target: '_blank', dir: 'auto'}, children);
	return a.textContent.trim() === host || a.textContent.trim() === url.href ? [a] : [a, h('span.address', {dir: 'ltr'}, ' (' + host + ')')];
}

// The inline forms, tried at one place in this order.
const inline = [
	[/^\\([!-/:-@[-`{-~])/, (m) => [m[1]]],
	[/^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/, (m) => [h('code', m[2].replace(/\n/g, ' ').replace(/^ (.*[^ ].*) $/, '$1'))]],
	[/^!\[([^\]]*)\]\(\s*<?([^\s>)]+)>?[^)]*\)/, (m) => link([t('image') + (m[1] ? ': ' + m[1] : '')], m[2])],
	[/^\[((?:\\.|`[^`]*`|!\[[^\]]*\]\([^)]*\)|[^\]\\])+)\]\(\s*<?((?:\([^\s()]*\)|[^\s()>])*)>?(?:\s+["'(][^)]*)?\)/, (m, depth) => link(spans(m[1], depth, true), m[2])],
	[/^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i, (m) => link([m[1]], m[1])],
	[/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/i, (m) => link([m[0]], m[0])],
	[/^(\*\*|__)(?=\S)([\s\S]*?\S)\1/, (m, depth) => [h('strong', spans(m[2], depth))]],
	[/^\*(?=[^\s*])((?:\*\*[^*]+\*\*|[^*])*?[^\s*])\*(?!\*)/, (m, depth) => [h('em', spans(m[1], depth))]],
	[/^_(?=[^\s_])([^_]*[^\s_])_(?![\p{L}\p{N}_])/u, (m, depth) => [h('em', spans(m[1], depth))]],
	[/^~~(?=\S)([\s\S]*?\S)~~/, (m, depth) => [h('del', spans(m[1], depth))]],
	[/^(?: {2,}|\\)\n/, () => [h('br')]],
];

const special = /[\\`!\[<*_~h]| {2,}\n/i;

// How long a text is looked at for what ends a form, and how deep forms may stand in each other.
const reach = 2000;
const deepest = 6;

// spans are the inline forms of a text.
export function spans(text, depth = 0, inLink = false) {
	const out = [];
	let plain = '';
	let before = '';
	const flush = () => {
		if (plain) out.push(plain);
		plain = '';
	};
	while (text) {
		const hit = depth < deepest && match(text, before, depth, inLink);
		if (hit) {
			flush();
			out.push(...hit.nodes);
			before = ' ';
			text = text.slice(hit.length);
			continue;
		}
		const next = text.slice(1).search(special);
		const n = next < 0 ? text.length : next + 1;
		plain += text.slice(0, n);
		before = text[n - 1];
		text = text.slice(n);
	}
	flush();
	return out;
}

function match(text, before, depth, inLink) {
	if (!special.test(text.slice(0, 3)) || !/^([\\`!\[<*_~h]| {2,}\n)/i.test(text)) return null;
	const word = /[\p{L}\p{N}]/u.test(before);
	const piece = text.slice(0, reach);
	for (const [pattern, make] of inline) {
		const m = pattern.exec(piece);
		if (!m || word && /^[_h]/i.test(m[0]) || inLink && /^(\[|!|<|h)/i.test(m[0])) continue;
		return {nodes: make(m, depth + 1), length: m[0].length};
	}
	return null;
}

// code is a block of code that copies clean.
export function code(text, lang) {
	const body = h('code', {dir: 'ltr'}, text);
	const copy = h('button', {type: 'button', class: 'copy quiet', 'aria-label': t('copy.code')}, icon('copy'), h('span', t('copy')));
	const el = h('figure.code', h('figcaption', h('span.said', lang || ''), copy), h('pre', {tabindex: '0'}, body));
	el.raw = text;
	copy.addEventListener('click', async () => {
		await navigator.clipboard.writeText(el.raw);
		copy.lastChild.textContent = t('copied');
		setTimeout(() => { copy.lastChild.textContent = t('copy'); }, 1500);
	});
	el.add = (more) => {
		el.raw += more;
		body.append(document.createTextNode(visible(more)));
	};
	return el;
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`\n]*)$/;
const heading = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])(?:\s+|$)(.*)$/;
const quote = /^ {0,3}> ?(.*)$/;
const row = /^\s*\|?.*\|.*$/;
const divider = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

// blocks are the blocks of lines of Markdown.
export function blocks(lines, depth = 0) {
	const out = [];
	for (let i = 0; i < lines.length;) {
		const [el, n] = block(lines, i, depth);
		if (el) out.push(el);
		i += n;
	}
	return out;
}

function block(lines, i, depth) {
	const line = lines[i];
	if (!line.trim()) return [null, 1];
	let m;
	if ((m = fence.exec(line))) return fenced(lines, i, m);
	if ((m = heading.exec(line))) return [h('h' + Math.min(m[1].length + 2, 6), {dir: 'auto'}, spans(m[2] || '')), 1];
	if (rule.test(line)) return [h('hr'), 1];
	if (depth < deepest && quote.test(line)) return quoted(lines, i, depth);
	if (depth < deepest && item.test(line)) return list(lines, i, depth);
	if (row.test(line) && i + 1 < lines.length && line.includes('|') && divider.test(lines[i + 1])) return table(lines, i);
	return paragraph(lines, i, depth);
}

// closes reports whether a line is the end of a block of code.
const closes = (line, mark) => line.trim().startsWith(mark) && !line.trim().replaceAll(mark[0], '');

function fenced(lines, i, m) {
	let n = i + 1;
	while (n < lines.length && !closes(lines[n], m[1])) n++;
	return [code(lines.slice(i + 1, n).join('\n'), m[2].trim().split(/\s/)[0]), n + 1 - i];
}

function quoted(lines, i, depth) {
	let n = i;
	const inner = [];
	while (n < lines.length && quote.test(lines[n])) inner.push(quote.exec(lines[n++])[1]);
	return [h('blockquote', blocks(inner, depth + 1)), n - i];
}

// list is a list: what is indented below an item belongs to it.
function list(lines, i, depth) {
	const first = item.exec(lines[i]);
	const ordered = /\d/.test(first[2]);
	const el = h(ordered ? 'ol' : 'ul', {start: ordered && parseInt(first[2], 10) !== 1 ? parseInt(first[2], 10) : null});
	let n = i;
	while (n < lines.length) {
		const m = item.exec(lines[n]);
		if (!m || /\d/.test(m[2]) !== ordered || rule.test(lines[n])) break;
		const indent = m[1].length + m[2].length + 1;
		const inner = [m[3]];
		n++;
		for (; n < lines.length; n++) {
			const blank = !lines[n].trim();
			const inside = lines[n].search(/\S/) >= Math.min(indent, 2);
			if (blank && !(n + 1 < lines.length && lines[n + 1].search(/\S/) >= Math.min(indent, 2))) break;
			if (!blank && !inside && (item.test(lines[n]) || fence.test(lines[n]) || heading.test(lines[n]) || !inner.at(-1).trim())) break;
			inner.push(inside ? lines[n].slice(Math.min(indent, lines[n].search(/\S/))) : lines[n].trim());
		}
		while (n < lines.length && !lines[n].trim() && n + 1 < lines.length && item.test(lines[n + 1])) n++;
		el.append(entry(inner, depth));
	}
	return [el, n - i];
}

function entry(inner, depth) {
	const task = /^\[([ xX])\]\s+/.exec(inner[0]);
	if (task) inner[0] = inner[0].slice(task[0].length);
	const body = blocks(inner, depth + 1);
	if (!task) return h('li', {dir: 'auto'}, body);
	return h('li', {dir: 'auto', class: 'task'}, h('span.box', {role: 'img', 'aria-label': t(task[1] === ' ' ? 'task.open' : 'task.done')}, task[1] === ' ' ? '☐' : '☑'), body);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, '|'));

function table(lines, i) {
	const head = cells(lines[i]);
	let n = i + 2;
	const body = h('tbody');
	for (; n < lines.length && lines[n].includes('|') && lines[n].trim(); n++) {
		const line = cells(lines[n]);
		body.append(h('tr', head.map((_, c) => h('td', {dir: 'auto'}, spans(line[c] || '')))));
	}
	const el = h('table', h('thead', h('tr', head.map((c) => h('th', {dir: 'auto', scope: 'col'}, spans(c))))), body);
	return [wide(t('table'), el), n - i];
}

function paragraph(lines, i, depth) {
	let n = i + 1;
	const ends = (l) => !l.trim() || fence.test(l) || heading.test(l) || rule.test(l) || depth < deepest && (quote.test(l) || /^ {0,3}([-*+]|1[.)])\s/.test(l));
	while (n < lines.length && !ends(lines[n])) n++;
	return [h('p', {dir: 'auto'}, spans(lines.slice(i, n).map((l) => l.trimStart()).join('\n'))), n - i];
}

// Markdown is all of a text.
export const markdown = (text) => h('div.markdown.said', blocks(text.replace(/\r\n/g, '\n').split('\n')));

// How much text may be open, that is, laid out again with every piece that comes.
const mostOpen = 4000;

// Flow is a text that grows. What is finished is laid out once.
export class Flow {
	constructor() {
		this.el = h('div.markdown.said');
		this.open = ''; // what may still change its form
		this.nodes = []; // of what is open
		this.fence = null; // the block of code that is open
	}

	add(text) {
		this.open += text;
		if (this.fence) this.code();
		if (!this.fence) this.settle();
	}

	// settle lays out what is open, and closes all but the last block of it.
	settle() {
		const lines = this.open.replace(/\r\n/g, '\n').split('\n');
		const at = this.boundary(lines);
		for (const n of this.nodes) n.remove();
		this.nodes = [];
		if (at > 0) {
			this.el.append(...blocks(lines.slice(0, at)));
			lines.splice(0, at);
			this.open = lines.join('\n');
		}
		const m = fence.exec(lines[0]);
		if (m && lines.length > 1) {
			this.fence = {mark: m[1], el: code('', m[2].trim().split(/\s/)[0])};
			this.el.append(this.fence.el);
			this.open = lines.slice(1).join('\n');
			this.code();
			return;
		}
		this.nodes = blocks(lines);
		this.el.append(...this.nodes);
	}

	// boundary is the line before which all is finished.
	boundary(lines) {
		let at = 0;
		let mark = '';
		for (let i = 0; i < lines.length; i++) {
			const m = fence.exec(lines[i]);
			if (mark) {
				if (closes(lines[i], mark) && i < lines.length - 1) {
					mark = '';
					at = i + 1;
				}
				continue;
			}
			if (m && i < lines.length - 1) {
				mark = m[1];
				at = i;
			} else if (i > 0 && !lines[i - 1].trim() && lines[i].trim() && !/^(\s|[-*+>]|\d+[.)])/.test(lines[i])) at = i;
		}
		if (!mark && this.open.length > mostOpen && at === 0) at = lines.length - 1;
		return at;
	}

	// code takes lines into the open block of code, until its end.
	code() {
		const lines = this.open.split('\n');
		const end = lines.findIndex((l, i) => i < lines.length - 1 && closes(l, this.fence.mark));
		const last = end < 0 ? lines.length - 1 : end;
		if (last > 0) this.fence.el.add((this.fence.el.raw ? '\n' : '') + lines.slice(0, last).join('\n'));
		this.open = lines.slice(end < 0 ? last : last + 1).join('\n');
		if (end < 0) return;
		this.fence = null;
		this.nodes = [];
		if (this.open) this.settle();
	}

	// end lays out what was left open.
	end() {
		if (this.fence) {
			if (this.open && !this.open.trim().startsWith(this.fence.mark)) this.fence.el.add((this.fence.el.raw ? '\n' : '') + this.open);
			this.fence = null;
			this.open = '';
			return;
		}
		this.nodes = [];
		this.open = '';
	}
}
