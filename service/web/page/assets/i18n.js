// This module has the words of the page. Each language has one file.
import {visible} from './dom.js';

let words = {};
export let language = 'en';
let plural = new Intl.PluralRules('en');

export const languages = {en: 'English', zh: '中文'};

// chosen returns the language that a person chose on this device. Without a choice it returns the browser's language.
function chosen() {
	const kept = localStorage.getItem('language');
	if (kept in languages) return kept;
	for (const l of navigator.languages || [navigator.language]) {
		const short = String(l).slice(0, 2);
		if (short in languages) return short;
	}
	return 'en';
}

// load reads the words of the chosen language. The words of later views are read again by more.
export async function load() {
	const to = chosen();
	const texts = await read(to);
	language = to;
	words = {};
	add(texts);
	parts.clear();
	plural = new Intl.PluralRules(language);
	document.documentElement.lang = language;
}

const parts = new Set();

// more adds the words of a view that is loaded at its first use.
export async function more(view) {
	if (parts.has(view)) return;
	add(await read(view + '.' + language));
	parts.add(view);
}

const read = async (file) => (await fetch(new URL(file + '.json', document.baseURI))).json();

function add(texts) {
	for (const [group, of] of Object.entries(texts)) {
		if (typeof of === 'string') words[group] = of;
		else for (const [key, text] of Object.entries(of)) words[key ? group + '.' + key : group] = text;
	}
}

// choose stores a language on this device.
export async function choose(l) {
	localStorage.setItem('language', l);
	await load();
}

// t returns a text of the page. A {name} in the text is replaced by its value. A text with a number n may have a
// separate form for one.
export function t(key, values = {}) {
	let text = words[key];
	if ('n' in values && plural.select(Number(values.n)) === 'one' && words[key + '.one']) text = words[key + '.one'];
	if (text === undefined) return key;
	return text.replace(/\{(\w+)\}/g, (all, name) => name in values ? visible(values[name]) : all);
}

// has reports whether a text exists. A name on the record may be newer than the page.
export const has = (key) => key in words;

// group lists the keys of a group that have a text, in the order of the file.
export const group = (name) => Object.keys(words).filter((key) => key.startsWith(name + '.') && !key.slice(name.length + 1).includes('.'))
	.map((key) => key.slice(name.length + 1));

// name returns the text for a word of the record. Without a text it returns the word.
export const name = (group, word) => has(group + '.' + word) ? t(group + '.' + word) : String(word || '').replaceAll('_', ' ');

const units = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

// ago describes a moment relative to now.
export function ago(at) {
	const seconds = (Date.now() - new Date(at)) / 1000;
	const f = new Intl.RelativeTimeFormat(language, {numeric: 'auto', style: 'short'});
	for (const [unit, size] of units) {
		if (Math.abs(seconds) >= size) return f.format(-Math.round(seconds / size), unit);
	}
	return f.format(0, 'second');
}

// clock returns a time of day, with the date if the day is not today.
export function clock(at) {
	const d = new Date(at);
	const today = d.toDateString() === new Date().toDateString();
	return d.toLocaleString(language, today ? {timeStyle: 'medium'} : {dateStyle: 'medium', timeStyle: 'short'});
}

// lasted describes a duration, given in milliseconds.
export function lasted(ms) {
	const f = (n, unit, digits = 0) => new Intl.NumberFormat(language, {style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: digits}).format(n);
	if (ms < 1000) return f(Math.round(ms), 'millisecond');
	if (ms < 60000) return f(ms / 1000, 'second', 1);
	if (ms < 3600000) return f(Math.floor(ms / 60000), 'minute') + ' ' + f(Math.round(ms % 60000 / 1000), 'second');
	return f(Math.floor(ms / 3600000), 'hour') + ' ' + f(Math.round(ms % 3600000 / 60000), 'minute');
}

export const number = (n) => new Intl.NumberFormat(language).format(n);
export const compact = (n) => new Intl.NumberFormat(language, {notation: 'compact', maximumFractionDigits: 1}).format(n);

// money describes an amount in a currency that an agent named. The currency may be an invalid one.
export function money(amount, currency) {
	try {
		return new Intl.NumberFormat(language, {style: 'currency', currency, maximumFractionDigits: amount < 1 ? 4 : 2}).format(amount);
	} catch {
		return number(amount) + ' ' + currency;
	}
}
