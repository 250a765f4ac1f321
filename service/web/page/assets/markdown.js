// This module shows an agent's Markdown as elements with text nodes. HTML in it stays text. A link leads only to http,
// https or mailto and shows its host. An image becomes a link to the image. The time grows only with the length of the
// text, because no character is read again for each possible form. Only a limited number of forms of a text is laid
// out. The text after them is shown as written, so a browser can lay out every page.
import {h, icon, visible, wide} from './dom.js';
import {t} from './i18n.js';

// link makes a link that shows its host. For another kind of address it returns the text and the address.
function link(children, address) {
	const url = /^\s*(?:https?|mailto):/i.test(address) && URL.canParse(address) ? new URL(address) : null;
	if (!url) return [...children, h('span.address', ' (' + address + ')')];
	const host = url.protocol === 'mailto:' ? url.pathname : url.host;
	const a = h('a', {href: url.href, rel: 'noopener noreferrer nofollow', target: '_blank', dir: 'auto'}, children);
	return a.textContent.trim() === host || a.textContent.trim() === url.href ? [a] : [a, h('span.address', {dir: 'ltr'}, ' (' + host + ')')];
}

// mostForms is the number of marks and elements of one text that are laid out. The object room counts down from it.
const mostForms = 4_000;

// linkForms is the number of forms that one link counts as, because a link takes more work.
const linkForms = 4;

// plain shows lines as they were written.
const plain = (lines) => h('p.plain', {dir: 'auto'}, lines.join('\n'));

// spent tells the reader that the end of a text is shown as written.
const spent = () => h('p.dim.small', t('plain'));

// deepest is the largest depth of nested forms.
const deepest = 6;

// candidates is the number of opening marks with which a closing mark is compared.
const candidates = 3;

const blank = (c) => c === undefined || /\s/.test(c);
const letter = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const special = /[\\`!\[\]<*_~h\n]/gi;
const escapable = /[!-/:-@[-`{-~]/;

// run returns the position after the last of the equal characters that begin at a position.
function run(text, at) {
	let end = at + 1;
	while (text[end] === text[at]) end++;
	return end;
}

// tokens returns strings, finished nodes, runs of marks, and the brackets of links. A run of marks is a sequence of
// equal marks.
function tokens(text, room) {
	const out = [];
	const brackets = []; // positions in out of the open brackets
	let outside = 0; // number of open brackets around a link; they cannot become links
	const last = lastRuns(text);
	let from = 0; // start of the text before at that is not yet in out
	let at = 0;
	// put appends a token that replaces the text up to end.
	const put = (end, token, cost = 1) => {
		if (at > from) out.push(text.slice(from, at));
		out.push(token);
		at = from = end;
		room.left -= cost;
	};
	for (;;) {
		special.lastIndex = at;
		const hit = room.left > 0 && special.test(text);
		at = hit ? special.lastIndex - 1 : text.length;
		if (!hit) break;
		const c = text[at];
		switch (c) {
		case '\\':
			if (text[at + 1] === '\n') put(at + 2, {tag: 'br'});
			else if (at + 1 < text.length && escapable.test(text[at + 1])) put(at + 2, text[at + 1]);
			else at++;
			break;
		case '\n': {
			let start = at;
			while (start > from && text[start - 1] === ' ') start--;
			const end = at + 1;
			if (end - start > 2) {
				at = start;
				put(end, {tag: 'br'});
			} else at = end;
			break;
		}
		case '`': {
			const end = run(text, at);
			const close = last.get(end - at) > at ? codeEnd(text, at, end) : -1;
			if (close < 0) at = end;
			else put(close + end - at, {tag: 'code', text: codeText(text.slice(end, close))});
			break;
		}
		case '<': {
			const end = text.slice(at, at + 9).match(/^<(https?:\/\/|mailto:)/i) ? addressEnd(text, at + 1) : -1;
			if (end > 0 && text[end] === '>') put(end + 1, auto(text.slice(at + 1, end)), linkForms);
			else at++;
			break;
		}
		case '!':
		case '[': {
			const mark = c === '!' ? '![' : '[';
			if (!text.startsWith(mark, at)) {
				at++;
				break;
			}
			put(at + mark.length, mark);
			brackets.push(out.length - 1);
			break;
		}
		case ']': {
			const open = brackets.pop();
			const mark = out[open];
			const inside = mark === '[' && brackets.length < outside;
			outside = Math.min(outside, brackets.length);
			const target = mark && !inside && text[at + 1] === '(' && destination(text, at + 2);
			if (!target) {
				at++;
				break;
			}
			if (mark === '[') outside = brackets.length;
			out[open] = {text: mark, address: target.address, at: 0, index: 0, height: 0};
			put(target.end, {end: true, text: text.slice(at, target.end)}, linkForms);
			break;
		}
		case '*':
		case '_':
		case '~': {
			const end = run(text, at);
			put(end, delimiter(c, end - at, text[at - 1], text[end]));
			break;
		}
		default: { // the letter h
			const bare = !letter(text[at - 1]) && /^https?:\/\//i.test(text.slice(at, at + 8));
			const end = bare ? bareEnd(text, at) : 0;
			if (end) put(end, auto(text.slice(at, end)), linkForms);
			else at++;
		}
		}
	}
	put(at, '');
	return out;
}

const auto = (address) => ({tag: 'a', address, children: [address]});

// delimiter makes the token of a run of marks, which stands between the characters before and after.
function delimiter(mark, count, before, after) {
	let opens = !blank(after);
	let closes = !blank(before);
	if (mark === '_') {
		opens &&= !letter(before);
		closes &&= !letter(after);
	}
	const known = mark !== '~' || count > 1;
	return {mark, count, whole: count, opens: opens && known, closes: closes && known, at: 0, index: 0, height: 0};
}

// lastRuns maps each length of a run of backticks to the position of the last run of this length.
function lastRuns(text) {
	const last = new Map();
	for (let at = text.indexOf('`'); at >= 0;) {
		const end = run(text, at);
		last.set(end - at, at);
		at = text.indexOf('`', end);
	}
	return last;
}

// codeEnd returns the position of the run that closes a code span. The caller knows that this run exists.
function codeEnd(text, open, start) {
	for (let at = start; ;) {
		at = text.indexOf('`', at);
		const end = run(text, at);
		if (end - at === start - open) return at;
		at = end;
	}
}

// codeText returns the text of a code span. One space at each end belongs to the marks.
function codeText(text) {
	const line = text.replaceAll('\n', ' ');
	return line.trim() && line[0] === ' ' && line.at(-1) === ' ' ? line.slice(1, -1) : line;
}

// addressEnd returns the end of an address. The address ends at another bracket, at a blank or with the text.
function addressEnd(text, at) {
	let end = at;
	while (!blank(text[end]) && text[end] !== '<' && text[end] !== '>') end++;
	return end;
}

// bareEnd returns the end of an address without brackets, or 0 if the address has only a scheme. Marks at the end do
// not belong to the address.
function bareEnd(text, at) {
	const start = text.indexOf('//', at) + 2;
	let end = start;
	while (!blank(text[end]) && !'<>"\'`'.includes(text[end]) && !(text[end] === ']' && text[end + 1] === '(')) end++;
	while (end > start && '.,;:!?)]}*_'.includes(text[end - 1])) end--;
	return end > start ? end : 0;
}

// destination reads the address of a link, an optional title and the closing bracket. It never reads beyond the
// possible beginning of the next link's address, so no text is read twice.
function destination(all, start) {
	const next = all.indexOf('](', start);
	const text = all.slice(start, next < 0 ? all.length : next);
	let at = 0;
	const skip = () => {
		while (at < text.length && blank(text[at])) at++;
	};
	skip();
	const bracket = text[at] === '<';
	if (bracket) at++;
	const from = at;
	for (let deep = 0; at < text.length; at++) {
		const c = text[at];
		if (blank(c) || (bracket ? c === '>' : c === ')' && deep === 0)) break;
		if (c === '(') deep++;
		if (c === ')') deep--;
	}
	const address = text.slice(from, at);
	if (bracket && text[at++] !== '>' || !address) return null;
	const after = at;
	skip();
	if (at > after && '"\'('.includes(text[at])) {
		at = text.indexOf(text[at] === '(' ? ')' : text[at], at + 1) + 1;
		if (at === 0) return null;
		skip();
	}
	return text[at] === ')' ? {address, end: start + at + 1} : null;
}

const tags = {'*': ['em', 'strong'], '_': ['em', 'strong'], '~': ['del', 'del']};

// tree makes nodes of the tokens between marks that belong together.
function tree(list) {
	const out = [];
	const open = []; // frames: the open marks and links, the innermost one last
	const marks = {'*': [], '_': [], '~': []}; // the frames of each mark
	const links = [];
	// enter opens a frame. The frame is also in out, because its marks are text until another mark closes it.
	const enter = (frame, stack) => {
		frame.at = out.length;
		frame.index = open.length;
		open.push(frame);
		stack.push(frame);
		out.push(frame);
	};
	const leave = () => {
		const f = open.pop();
		(f.mark ? marks[f.mark] : links).pop();
		if (open.length) open.at(-1).height = Math.max(open.at(-1).height, f.height);
	};
	const cut = (index) => {
		while (open.length > index) leave();
	};
	// opener returns the frame that a run of marks closes. It looks only within the innermost link.
	const opener = (token) => {
		const stack = marks[token.mark];
		for (let i = stack.length - 1; i >= 0 && i >= stack.length - candidates; i--) {
			if (links.length && stack[i].index < links.at(-1).index) return null;
			if (fits(stack[i], token)) return stack[i];
		}
		return null;
	};
	const close = (token) => {
		for (let f; token.count > 0 && (f = opener(token));) {
			cut(f.index + 1);
			if (f.height >= deepest) {
				leave();
				continue;
			}
			const use = Math.min(2, f.count, token.count);
			const node = {tag: tags[f.mark][use - 1], children: out.splice(f.at + 1)};
			f.height++;
			f.count -= use;
			token.count -= use;
			if (f.count === 0) {
				leave();
				out.pop();
			}
			out.push(node);
		}
	};
	for (const token of list) {
		if (token.end) {
			const f = links.at(-1);
			cut(f.index + 1);
			const deep = f.height++ >= deepest;
			leave();
			if (deep) out.push(token);
			else out.push({tag: 'a', address: f.address, image: f.text === '![', children: out.splice(f.at).slice(1)});
		} else if (token.address && !token.tag) enter(token, links);
		else if (token.mark) {
			if (token.closes) close(token);
			if (token.count > 0 && token.opens) enter(token, marks[token.mark]);
			else if (token.count > 0) out.push(token);
		} else out.push(token);
	}
	return out;
}

// fits reports whether two runs of marks belong together. In "**a*b**" the outer two do.
function fits(f, token) {
	if (token.mark === '~') return f.count > 1 && token.count > 1;
	const either = f.closes || token.opens;
	return !either || (f.whole + token.whole) % 3 !== 0 || f.whole % 3 === 0;
}

// spans returns the elements and texts of one block of text.
const spans = (text, room) => text.search(special) < 0 ? [text] : draw(tree(tokens(text, room)), false);

// draw makes elements of a tree. A link within a link becomes text.
function draw(nodes, inLink) {
	const out = [];
	let plain = '';
	for (const n of nodes) {
		if (typeof n === 'string' || !n.tag) {
			plain += n.mark ? n.mark.repeat(n.count) : n.text ?? n;
			continue;
		}
		if (plain) out.push(plain);
		plain = '';
		if (n.tag !== 'a') out.push(h(n.tag, n.text ?? draw(n.children || [], inLink)));
		else {
			const inner = draw(n.children, true);
			if (n.image) inner.unshift(t('image') + (inner.length ? ': ' : ''));
			out.push(inLink ? inner : link(inner, n.address));
		}
	}
	if (plain) out.push(plain);
	return out;
}

// code makes a block of code with a button that copies the code.
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

// fence returns the mark and the language of a line that opens a block of code. For another line it returns null.
function fence(line) {
	const m = /^ {0,3}(`{3,}|~{3,})/.exec(line);
	if (!m || line.includes('`', m[0].length)) return null;
	return {mark: m[1], lang: line.slice(m[0].length).trim().split(/\s/)[0]};
}

// heading returns the level and the text of a heading. For another line it returns null.
function heading(line) {
	const m = /^ {0,3}(#{1,6})(?:\s|$)/.exec(line);
	if (!m) return null;
	const text = line.slice(m[0].length).trim();
	let end = text.length;
	while (text[end - 1] === '#') end--;
	return {level: m[1].length, text: end === 0 || /\s/.test(text[end - 1]) ? text.slice(0, end).trim() : text};
}

// uniform reports whether a text has no other character than c.
const uniform = (text, c) => !text.replaceAll(c, '');

function rule(line) {
	if (!/^ {0,3}[-*_]/.test(line)) return false;
	const marks = line.replace(/\s/g, '');
	return marks.length > 2 && uniform(marks, marks[0]);
}

// item returns the indent, the mark and the text of a list item. For another line it returns null.
function item(line) {
	const m = /^( {0,3})([-*+]|\d{1,9}[.)])(?:\s|$)/.exec(line);
	return m && {indent: m[1].length, mark: m[2], text: line.slice(m[0].length).trimStart()};
}

const quote = /^ {0,3}> ?/;

const divider = (line) => line.includes('-') && cells(line).every((c) => /^:?-+:?$/.test(c));

// indent returns the number of blanks before a line's first character. It returns -1 for a blank line.
const indent = (line) => line.trim() ? line.length - line.trimStart().length : -1;

// blocks returns the elements of Markdown lines, one for each block.
function blocks(lines, room, depth = 0) {
	const out = [];
	let i = 0;
	while (i < lines.length && room.left > 0) {
		const [el, n] = block(lines, i, room, depth);
		if (el) out.push(el);
		i += n;
	}
	if (i < lines.length) out.push(plain(lines.slice(i)));
	return out;
}

function block(lines, i, room, depth) {
	const line = lines[i];
	if (!line.trim()) return [null, 1];
	room.left -= 2; // one for the element, and one for the search for its form
	let m;
	if ((m = fence(line))) return fenced(lines, i, room, m);
	if ((m = heading(line))) return [h('h' + Math.min(m.level + 1, 6), {dir: 'auto'}, spans(m.text, room)), 1];
	if (rule(line)) return [h('hr'), 1];
	if (depth < deepest && quote.test(line)) return quoted(lines, i, room, depth);
	if (depth < deepest && item(line)) return list(lines, i, room, depth);
	if (line.includes('|') && i + 1 < lines.length && divider(lines[i + 1])) {
		const head = cells(line);
		if (head.length < room.left) return table(lines, i, room, head);
	}
	return paragraph(lines, i, room, depth);
}

// closes reports whether a line ends a block of code.
const closes = (line, mark) => line.trim().startsWith(mark) && uniform(line.trim(), mark[0]);

// codeForms is the number of elements of a block of code.
const codeForms = 10;

function fenced(lines, i, room, m) {
	room.left -= codeForms;
	let n = i + 1;
	while (n < lines.length && !closes(lines[n], m.mark)) n++;
	return [code(lines.slice(i + 1, n).join('\n'), m.lang), n + 1 - i];
}

function quoted(lines, i, room, depth) {
	let n = i;
	const inner = [];
	while (n < lines.length && quote.test(lines[n])) inner.push(lines[n++].replace(quote, ''));
	return [h('blockquote', blocks(inner, room, depth + 1)), n - i];
}

// list makes a list. The indented lines below an item belong to the item.
function list(lines, i, room, depth) {
	const first = parseInt(item(lines[i]).mark, 10);
	const ordered = !isNaN(first);
	const el = h(ordered ? 'ol' : 'ul', {start: ordered && first !== 1 ? first : null});
	let n = i;
	while (n < lines.length && room.left > 0) {
		const m = item(lines[n]);
		if (!m || /\d/.test(m.mark) !== ordered || rule(lines[n])) break;
		const inner = [m.text];
		n++;
		for (; n < lines.length; n++) {
			const blank = !lines[n].trim();
			const inside = indent(lines[n]) >= 2;
			if (blank && !(n + 1 < lines.length && indent(lines[n + 1]) >= 2)) break;
			if (!blank && !inside && (item(lines[n]) || fence(lines[n]) || heading(lines[n]) || !inner.at(-1).trim())) break;
			inner.push(inside ? lines[n].slice(Math.min(m.indent + m.mark.length + 1, indent(lines[n]))) : lines[n].trim());
		}
		while (n < lines.length && !lines[n].trim() && n + 1 < lines.length && item(lines[n + 1])) n++;
		el.append(entry(inner, room, depth));
	}
	return [el, n - i];
}

function entry(inner, room, depth) {
	room.left -= 2;
	const task = /^\[([ xX])\]\s+/.exec(inner[0]);
	if (task) inner[0] = inner[0].slice(task[0].length);
	const body = blocks(inner, room, depth + 1);
	if (!task) return h('li', {dir: 'auto'}, body);
	return h('li', {dir: 'auto', class: 'task'}, h('span.box', {role: 'img', 'aria-label': t(task[1] === ' ' ? 'task.open' : 'task.done')}, task[1] === ' ' ? '☐' : '☑'), body);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, '|'));

function table(lines, i, room, head) {
	const row = (tag, props, line) => {
		room.left -= line.length + 1;
		return h('tr', line.map((c) => h(tag, {dir: 'auto', ...props}, spans(c, room))));
	};
	const el = h('table', h('thead', row('th', {scope: 'col'}, head)));
	const body = h('tbody');
	let n = i + 2;
	for (; n < lines.length && room.left > 0 && lines[n].includes('|') && lines[n].trim(); n++) body.append(row('td', {}, cells(lines[n]).slice(0, head.length)));
	el.append(body);
	return [wide(t('table'), el), n - i];
}

function paragraph(lines, i, room, depth) {
	let n = i + 1;
	const ends = (l) => !l.trim() || fence(l) || heading(l) || rule(l) || depth < deepest && (quote.test(l) || /^ {0,3}([-*+]|1[.)])\s/.test(l));
	while (n < lines.length && !ends(lines[n])) n++;
	return [h('p', {dir: 'auto'}, spans(lines.slice(i, n).map((l) => l.trimStart()).join('\n'), room)), n - i];
}

// markdown makes the element of a complete text.
export function markdown(text) {
	const room = {left: mostForms};
	const list = blocks(text.replace(/\r\n/g, '\n').split('\n'), room);
	return h('div.markdown.said', list, room.left <= 0 && spent());
}

// mostOpen is the length of the open text. The open text is laid out again with each new piece.
const mostOpen = 4000;

// Flow is a text that grows. A finished part of it is laid out only once.
export class Flow {
	constructor() {
		this.el = h('div.markdown.said');
		this.open = ''; // the text whose form may still change
		this.laid = 0; // the length of the open text at its last layout
		this.nodes = []; // the elements of the open text
		this.room = {left: mostForms};
		this.plain = null; // the element of the text after the room is used up
		this.fence = null; // the open block of code
		this.half = ''; // the first half of a line end
	}

	add(text) {
		text = (this.half + text).replace(/\r\n/g, '\n');
		this.half = text.endsWith('\r') ? '\r' : '';
		if (this.half) text = text.slice(0, -1);
		if (this.fence) text = this.code(text);
		if (this.fence) return;
		if (this.plain) {
			this.plain.append(document.createTextNode(visible(text)));
			return;
		}
		this.open += text;
		// A long text is laid out again only after it has grown by a fraction of its length. All layouts together
		// therefore take linear time.
		if (this.open.length > mostOpen && this.open.length - this.laid < this.laid / 16) {
			const last = this.nodes.at(-1) || this.el;
			last.append(document.createTextNode(visible(text)));
		} else this.settle();
	}

	// settle lays out the open text. All blocks except the last one are then finished.
	settle() {
		const lines = this.open.split('\n');
		const at = this.boundary(lines);
		for (const n of this.nodes) n.remove();
		this.nodes = [];
		if (at > 0) {
			this.el.append(...blocks(lines.slice(0, at), this.room));
			lines.splice(0, at);
			this.open = lines.join('\n');
		}
		this.laid = this.open.length;
		const m = fence(lines[0]);
		if (m && lines.length > 1 && this.room.left > 0) {
			// held is the beginning of a line that may end the block. It is null if the line is already shown.
			this.fence = {mark: m.mark, el: code('', m.lang), lead: '', held: ''};
			this.el.append(this.fence.el);
			this.room.left -= codeForms;
			this.open = this.code(lines.slice(1).join('\n'));
			if (this.open) this.settle();
			return;
		}
		const room = {...this.room};
		this.nodes = blocks(lines, room);
		this.el.append(...this.nodes);
		if (room.left > 0) return;
		this.plain = plain([]);
		this.el.append(this.plain);
		this.nodes = [];
		this.open = '';
		this.laid = 0;
	}

	// boundary returns the number of the first line that is not finished.
	boundary(lines) {
		let at = 0;
		let mark = '';
		for (let i = 0; i < lines.length; i++) {
			const m = fence(lines[i]);
			if (mark) {
				if (closes(lines[i], mark) && i < lines.length - 1) {
					mark = '';
					at = i + 1;
				}
				continue;
			}
			if (m && i < lines.length - 1) {
				mark = m.mark;
				at = i;
			} else if (i > 0 && !lines[i - 1].trim() && lines[i].trim() && !/^(\s|[-*+>]|\d+[.)])/.test(lines[i])) at = i;
		}
		if (!mark && this.open.length > mostOpen && at === 0) at = lines.length - 1;
		return at;
	}

	// code adds a text to the open block of code. It returns the text after the end of the block.
	code(text) {
		const f = this.fence;
		const lines = text.split('\n');
		let more = '';
		for (let i = 0; i < lines.length; i++) {
			if (i > 0) {
				if (f.held !== null && closes(f.held, f.mark)) {
					f.el.add(more);
					this.fence = null;
					return lines.slice(i).join('\n');
				}
				if (f.held !== null) more += f.lead + f.held;
				f.lead = '\n';
				f.held = '';
			}
			if (f.held === null) more += lines[i];
			else if (uniform(lines[i].trim(), f.mark[0])) f.held += lines[i];
			else {
				more += f.lead + f.held + lines[i];
				f.held = null;
			}
		}
		if (more) f.el.add(more);
		return '';
	}

	// end lays out the rest of the open text.
	end() {
		if (this.half) {
			this.half = '';
			this.add('\r ');
		}
		const f = this.fence;
		if (f && f.held && !f.held.trim().startsWith(f.mark)) f.el.add(f.lead + f.held);
		if (!f && this.open.length > this.laid) this.settle();
		if (this.plain) this.el.append(spent());
		this.fence = null;
		this.nodes = [];
		this.open = '';
		this.laid = 0;
	}
}
