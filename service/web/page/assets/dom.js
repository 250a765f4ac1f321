// This module makes elements one by one. A text always becomes a text node, because no function here accepts markup.

const SVG = 'http://www.w3.org/2000/svg';

// unseen matches invisible characters, and characters that change the order of the text around them.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;
const spelled = {'\u001b': '⟨ESC⟩', '\u0000': '⟨NUL⟩', '\u0007': '⟨BEL⟩', '\u0008': '⟨BS⟩', '\r': '⟨CR⟩'}; // gets each further character that was found

// visible spells out invisible characters between the brackets that the terminal also uses.
export function visible(text) {
	text = String(text);
	if (text.search(unseen) < 0) return text;
	return text.replace(/\r\n/g, '\n').replace(unseen, (c, at, all) => {
		if (c === '\u200d' && /\p{Extended_Pictographic}/u.test(all.slice(at + 1, at + 3))) return c; // within one emoji
		return spelled[c] ??= '⟨U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '⟩';
	});
}

// make fills an element with its children. If the first of rest is an object, it has the attributes and the on…
// handlers.
function make(el, classes, rest) {
	const props = rest[0] && Object.getPrototypeOf(rest[0]) === Object.prototype ? rest.shift() : {};
	if (props.onclick && el.type === 'submit') el.type = 'button';
	if (classes) el.setAttribute('class', classes);
	for (const key in props) {
		const value = props[key];
		if (value === undefined || value === null || value === false) continue;
		if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
		else if (key === 'value') el.value = value;
		else if (key === 'class') el.setAttribute('class', (classes + ' ' + value).trim());
		else el.setAttribute(key, value === true ? '' : value);
	}
	fill(el, rest);
	return el;
}

function fill(el, children) {
	for (const child of children) {
		if (Array.isArray(child)) fill(el, child);
		else if (child instanceof Node) el.append(child);
		else if (child || child === 0) el.append(document.createTextNode(visible(child)));
	}
}

const maker = (create) => (tag, ...rest) => {
	const dot = tag.indexOf('.');
	return dot < 0 ? make(create(tag), '', rest) : make(create(tag.slice(0, dot)), tag.slice(dot + 1).replaceAll('.', ' '), rest);
};

// h makes an HTML element from 'name.class', and s makes an element of a drawing.
export const h = maker((name) => document.createElement(name));
export const s = maker((name) => document.createElementNS(SVG, name));

// said makes an element for the words of an agent or a person. The direction of these words does not affect the text
// around them.
export const said = (tag, text, props) => h(tag + '.said', {dir: 'auto', ...props}, text);

const paths = {
	now: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 4v5l3.5 2',
	sessions: 'M4 5h16v11H9l-5 4z',
	flows: 'M9 3h6v5H9zM3 16h6v5H3zM15 16h6v5h-6zM12 8v4M6 16v-4h12v4',
	record: 'M5 4h14v16H5zM9 9h6M9 13h6',
	numbers: 'M5 20V11M12 20V4M19 20v-6',
	devices: 'M8 3h8v18H8zM11 18h2',
	plus: 'M12 5v14M5 12h14',
	back: 'M15 5l-7 7 7 7',
	send: 'M12 20V5M5.5 11.5 12 5l6.5 6.5',
	stop: 'M7 7h10v10H7z',
	queue: 'M4 7h11M4 12h11M4 17h6M18 12v8M14.5 16H21.5',
	clip: 'M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.5 8.5a1.7 1.7 0 0 1-2.5-2.5L15 7',
	search: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21',
	check: 'M5 12.5l4.5 4.5L19 7',
	cross: 'M6 6l12 12M18 6 6 18',
	warn: 'M12 4 2.5 20h19zM12 10v4.5M12 17.2v.1',
	down: 'M12 4v15M5.5 12.5 12 19l6.5-6.5',
	shield: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z',
	copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
	edit: 'M4 20l1-4L16 5l3 3L8 19z',
	read: 'M4 5h6l2 2 2-2h6v13h-6l-2 2-2-2H4z',
	execute: 'M5 7l5 5-5 5M12 17h7',
	delete: 'M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13',
	move: 'M4 12h15M13 6l6 6-6 6',
	fetch: 'M12 4v11M7 11l5 5 5-5M5 20h14',
	think: 'M9 18h6M10 21h4M12 3a6 6 0 0 0-3.5 11v2h7v-2A6 6 0 0 0 12 3z',
	other: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v3M12 18v3M3 12h3M18 12h3',
};

// icon makes a drawing that is hidden from a screen reader, because words stand next to it.
export const icon = (name) => s('svg', {viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true', focusable: 'false'},
	s('path', {d: paths[name] || paths.other}));

// replace replaces all children of an element.
export function replace(el, ...children) {
	el.replaceChildren(...children.flat(Infinity).filter((c) => c));
	return el;
}

// soon calls the function f with the next frame. If no frame is drawn, it calls f after a moment.
export function soon(f) {
	const timer = setTimeout(() => {
		cancelAnimationFrame(frame);
		f();
	}, 200);
	const frame = requestAnimationFrame(() => {
		clearTimeout(timer);
		f();
	});
}

// wide makes a scrollable region for content that may be wider than the screen.
export const wide = (name, ...inside) => h('div.wide', {tabindex: '0', role: 'group', 'aria-label': name}, inside);

// warn shows a fault, or with the kind ask something that a person should know.
export const warn = (words, kind = '', role) => h('p', {class: 'alert ' + kind, role}, icon('warn'), h('div', words));

// choice makes a list of options [value, text] with a label.
export function choice(label, name, options, value, onchange) {
	const el = h('select', {name, onchange}, options.map(([v, text]) => h('option', {value: v, selected: v === value}, text)));
	return {el, label: h('label', label, el)};
}

export const heading = (title) => h('div.heading', h('h2', title));

// tip returns the attributes that name an element without words.
export const tip = (title) => ({'aria-label': title, title});

// empty is shown if there is nothing to show.
export const empty = (sign, title, why, ...more) => h('div.empty.card', icon(sign), h('h2', title), h('p', why), ...more);

// loading is shown while data is being read.
export const loading = () => h('div', h('div.skeleton'), h('div.skeleton'));

let announcer;

// announce tells a screen reader about an event elsewhere on the page.
export function announce(text) {
	if (!announcer) {
		announcer = h('div.unseen', {role: 'status', 'aria-live': 'polite'});
		document.body.append(announcer);
	}
	announcer.textContent = visible(text);
}

// save gives bytes to the browser as a file to save.
export function save(blob, name) {
	const url = URL.createObjectURL(blob);
	const a = h('a', {href: url, download: name});
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// dialog shows a question that must be decided first. It returns the value of the pressed button.
export function dialog(...children) {
	const el = h('dialog', h('form', {method: 'dialog'}, ...children));
	document.body.append(el);
	el.showModal();
	return new Promise((resolve) => el.addEventListener('close', () => {
		resolve(el.returnValue);
		el.remove();
	}));
}
