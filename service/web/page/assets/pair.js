// This module makes this browser a device. The terminal gives a code, the browser makes a key, and both show the same
// word.
import * as device from './device.js';
import {post, get, send} from './api.js';
import {h, replace, announce, loading, warn} from './dom.js';
import {t} from './i18n.js';
import {uninstalled} from './push.js';

const logo = () => h('img', {src: 'icon.svg', alt: '', class: 'logo'});
const gate = (...children) => h('main.gate', {tabindex: '-1', id: 'main'}, logo(), ...children);

// fromAddress returns the code in the address, and removes the code from the address bar and the history.
export function fromAddress() {
	const m = /^#pair=(.+)$/.exec(location.hash);
	if (!m) return '';
	history.replaceState(null, '', location.pathname + location.search);
	return decodeURIComponent(m[1]);
}

// impossible is shown if the browser cannot store a key.
export const impossible = () => gate(h('h1', t('gate.insecure')), h('p', t('gate.insecure.why')));

// welcome asks for a code. given is a code that is already known. why tells the fate of the earlier device.
export function welcome(why, done, given) {
	const code = h('input', {name: 'code', value: given, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', required: true});
	const form = h('form', {onsubmit: (e) => {
		e.preventDefault();
		const m = /#pair=(.+)$/.exec(code.value.trim());
		const el = pairing(m ? decodeURIComponent(m[1]) : code.value.trim(), done);
		view.replaceWith(el);
	}}, h('label', t('gate.code'), code), h('p.row', h('button.primary', t('gate.title'))));
	const view = gate(
		h('div', h('h1', t('gate.title')), h('p.dim', t('gate.lead'))),
		why && warn(why, '', 'alert'), uninstalled() && warn(t('install'), 'ask'),
		h('ol', h('li', t('gate.step1'), h('pre.command', 'perlica web pair')), h('li', t('gate.step2')), h('li', t('gate.step3'))),
		form);
	return view;
}

// nameOf suggests a name for this browser.
function nameOf() {
	const m = /iPhone|iPad|Android|Macintosh|Windows|CrOS|Linux/.exec(navigator.userAgent);
	return m ? m[0].replace('intosh', '') : 'Browser';
}

// pairing uses up a code, makes the key and waits for the decision of the person at the terminal.
export function pairing(code, done) {
	const body = h('div');
	const view = gate(body);
	steps(code, body, done).catch((err) => {
		replace(body, h('h1', t('pair.failed')), warn(err.lost ? t('error.lost') : err.message, '', 'alert'),
			h('p.row', h('button.primary', {onclick: () => view.replaceWith(welcome('', done))}, t('pair.again'))));
	});
	return view;
}

async function steps(code, body, done) {
	replace(body, h('h1', t('pair.starting')), loading());
	// The answer empties the stored data of this origin. A browser obeys it only with these credentials.
	const begun = await send('POST', 'v1/pairing/begin', {body: {code}, credentials: 'same-origin'});
	const {pairing: id} = await begun.json();
	const name = await named(body);
	const key = await device.make();
	const asked = await post('v1/pairing', {pairing: id, name, key: await device.publicHalf(key)});
	replace(body, h('h1', t('pair.compare')), h('p.dim', t('pair.compare.why')),
		h('p.word', {dir: 'ltr'}, asked.word), h('p.small.dim', {role: 'status'}, t('pair.waiting')));
	announce(t('pair.word', {word: asked.word}));
	for (;;) {
		const r = await get('v1/pairing/' + encodeURIComponent(id));
		if (r.state === 'waiting') continue;
		if (r.state !== 'paired') throw new Error(t('pair.' + r.state));
		const self = {id: r.device, name: r.name || name, rights: r.rights, key};
		await device.keep(self);
		if (navigator.storage && navigator.storage.persist) navigator.storage.persist().catch(() => false);
		done(self);
		return;
	}
}

// named asks for the name of this device.
function named(body) {
	return new Promise((resolve) => {
		const input = h('input', {name: 'device', value: nameOf(), maxlength: '40', required: true, autocomplete: 'off'});
		replace(body, h('h1', t('pair.name')), h('p.dim', t('pair.name.why')),
			h('form', {onsubmit: (e) => {
				e.preventDefault();
				resolve(input.value.trim());
			}}, h('label', t('device.name'), input), h('p.row', h('button.primary', t('pair.go')))));
		input.focus();
	});
}
