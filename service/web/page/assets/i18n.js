// Words of the page, one file a language.
import {visible} from './dom.js';

let words = {};
export let language = 'en';
let plural = new Intl.PluralRules('en');

export const languages = {en: 'English', zh: '中文'};

// chosen is the language that somebody chose on this device, else the browser's.
function chosen() {
	const kept = localStorage.getItem('language');
	if (kept in languages) return kept;
	for (const l of navigator.languages || [navigator.language]) {
		const short = String(l).slice(0, 2);
		if (short in languages) return short;
	}
	return 'en';
}

// load reads the words of the chosen language.
export async function load() {
	const to = chosen();
	const texts = await (await fetch(new URL(to + '.json', document.baseURI))).json();
	language = to;
	words = {};
	for (const [group, of] of Object.entries(texts)) {
		if (typeof of === 'string') words[group] = of;
		else for (const [key, text] of Object.entries(of)) words[key ? group + '.' + key : group] = text;
	}
	plural = new Intl.PluralRules(language);
	document.documentElement.lang = language;
}

// choose keeps a language on this device.
export async function choose(l) {
	localStorage.setItem('language', l);
	await load();
}

// t is a text of the page. {name} in it stands for a value; of a text with a number n there may be
// a form for one.
export function t(key, values = {}) {
	let text = words[key];
	if ('n' in values && plural.select(Number(values.n)) === 'one' && words[key + '.one']) text = words[key + '.one'];
	if (text === undefined) return key;
	return text.replace(/\{(\w+)\}/g, (all, name) => name in values ? visible(values[name]) : all);
}

// has reports whether there is a text: for names of the record that may be newer than the page.
export const has = (key) => key in words;

// group lists the words of a group that have a text, in the order of the file.
export const group = (name) => Object.keys(words).filter((key) => key.startsWith(name + '.') && !key.slice(name.length + 1).includes('.'))
	.map((key) => key.slice(name.length + 1));

// name is a word of the record in the page's language, or as it is.
export const name = (group, word) => has(group + '.' + word) ? t(group + '.' + word) : String(word || '').replaceAll('_', ' ');

const units = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

// ago is a moment, seen from now.
export function ago(at) {
	const seconds = (Date.now() - new Date(at)) / 1000;
	const f = new Intl.RelativeTimeFormat(language, {numeric: 'auto', style: 'short'});
	for (const [unit, size] of units) {
		if (Math.abs(seconds) >= size) return f.format(-Math.round(seconds / size), unit);
	}
	return f.format(0, 'second');
}

// clock is a time of the day, with the day where that is another one.
export function clock(at) {
	const d = new Date(at);
	const today = d.toDateString() === new Date().toDateString();
	return d.toLocaleString(language, today ? {timeStyle: 'medium'} : {dateStyle: 'medium', timeStyle: 'short'});
}

// lasted is a duration in milliseconds.
export function lasted(ms) {
	const f = (n, unit, digits = 0) => new Intl.NumberFormat(language, {style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: digits}).format(n);
	if (ms < 1000) return f(Math.round(ms), 'millisecond');
	if (ms < 60000) return f(ms / 1000, 'second', 1);
	if (ms < 3600000) return f(Math.floor(ms / 60000), 'minute') + ' ' + f(Math.round(ms % 60000 / 1000), 'second');
	return f(Math.floor(ms / 3600000), 'hour') + ' ' + f(Math.round(ms % 3600000 / 60000), 'minute');
}

export const number = (n) => new Intl.NumberFormat(language).format(n);
export const compact = (n) => new Intl.NumberFormat(language, {notation: 'compact', maximumFractionDigits: 1}).format(n);

// money is an amount of a currency that an agent named: it need not be one.
export function money(amount, currency) {
	try {
		return new Intl.NumberFormat(language, {style: 'currency', currency, maximumFractionDigits: amount < 1 ? 4 : 2}).format(amount);
	} catch {
		return number(amount) + ' ' + currency;
	}
}
