// This module is the frame of the page: the device, the views, and the way from one view to another.
import * as device from './device.js';
import {use} from './api.js';
import {h, icon, loading, replace} from './dom.js';
import {load, more, t} from './i18n.js';
import {fromAddress, impossible, pairing, welcome} from './pair.js';
import {live} from './live.js';
import {uninstalled} from './push.js';
import {failure, now} from './now.js';
import {sessions} from './sessions.js';
import {session} from './session.js';
import {devices} from './devices.js';

const views = {now, sessions, session, new: session, devices};

// later has the views whose files are loaded at the first use. A module exports a function with the name of its view. A
// view may have words and styles of its own: see part.
const later = {
	record: () => import('./record.js'),
	run: () => import('./story.js'),
	numbers: () => import('./numbers.js'),
	flows: () => part('flows', import('./flows.js')),
	flow: () => part('flows', import('./flows.js')),
	changes: () => part('audit', import('./changes.js')),
	file: () => part('audit', import('./changes.js')),
	rules: () => part('audit', import('./rules.js')),
	report: () => part('audit', import('./report.js')),
};

// part loads a module together with the words and styles of a part of the page: NAME.en.json, NAME.zh.json and NAME.css.
const part = async (name, module) => (await Promise.all([module, more(name), style(name)]))[0];

const style = (name) => document.querySelector('link[href="' + name + '.css"]') || new Promise((resolve, reject) => {
	const link = h('link', {rel: 'stylesheet', href: name + '.css', onload: resolve, onerror: () => {
		link.remove();
		reject();
	}});
	document.head.append(link);
});
const tabs = ['now', 'sessions', 'flows', 'record', 'numbers', 'devices'];
const tabOf = {session: 'sessions', new: 'sessions', run: 'record', changes: 'record', file: 'record', rules: 'record', report: 'record', flow: 'flows'};

let frame;
let leave = () => {};

// route returns the view that the address names: #/view/id?name=value.
function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
	const [view, id] = path.split('/');
	return {view: view in views || view in later ? view : 'now', id: id && decodeURIComponent(id), query: Object.fromEntries(new URLSearchParams(query))};
}

// Frame is the part of the page that stays while views change.
class Frame {
	constructor() {
		this.title = h('h1', {tabindex: '-1'});
		this.back = h('a.button.quiet.square', {href: '#/now', 'aria-label': t('back'), hidden: true}, icon('back'));
		this.state = h('span.link-state', {role: 'status'});
		this.links = Object.fromEntries(tabs.map((id) => [id, h('a', {href: '#/' + id}, icon(id), h('span', t('tab.' + id)))]));
		this.badge = h('span.badge', {hidden: true});
		this.links.now.append(this.badge);
		this.main = h('main', {id: 'main', tabindex: '-1'});
		const tabbar = h('nav.tabs', {'aria-label': t('views')}, h('div.brand', h('img', {src: 'icon.svg', alt: ''}), 'Perlica'), Object.values(this.links));
		const skip = h('a.skip', {href: '#main', onclick: (e) => {
			e.preventDefault();
			this.main.focus();
		}}, t('skip'));
		this.content = h('div.frame', h('header.top', this.back, this.title, this.state), this.main);
		replace(document.getElementById('app'), skip, tabbar, this.content);
		live.watch(() => this.look());
		this.look();
	}

	// look shows the number of open questions and the state of the stream.
	look() {
		const n = live.questions.size;
		this.badge.hidden = n === 0;
		replace(this.badge, n ? h('span', {'aria-hidden': 'true'}, String(n)) : null, n ? h('span.unseen', t('questions.n', {n})) : null);
		const title = this.title.textContent;
		document.title = (n ? '(' + n + ') ' : '') + (title ? title + ' · ' : '') + 'Perlica';
		this.state.className = 'link-state ' + live.state;
		this.state.textContent = t('link.' + live.state);
	}

	show(r) {
		leave();
		for (const [id, a] of Object.entries(this.links)) {
			if (id === (tabOf[r.view] || r.view)) a.setAttribute('aria-current', 'page');
			else a.removeAttribute('aria-current');
		}
		this.back.hidden = !(r.view in tabOf);
		this.back.href = '#/' + (tabOf[r.view] || 'now');
		this.name(t('tab.' + (tabOf[r.view] || r.view)));
		const main = h('main', {id: 'main', tabindex: '-1', class: r.view === 'session' || r.view === 'new' ? 'with-composer' : ''});
		this.main.replaceWith(main);
		this.main = main;
		for (const old of this.content.querySelectorAll(':scope > .composer, :scope > .newest')) old.remove();
		scrollTo(0, 0);
		leave = () => {};
		if (r.view in later) this.enterLater(main, r);
		else this.enter(views[r.view], main, r);
	}

	enter(view, main, r) {
		leave = view(main, r, this) || (() => {});
	}

	// enterLater loads a view and enters it, unless another view was entered before it was loaded.
	async enterLater(main, r) {
		replace(main, loading());
		const module = await later[r.view]().catch(() => undefined);
		if (!main.isConnected) return;
		if (module) this.enter(module[r.view], main, r);
		else replace(main, failure({lost: true}));
	}

	// name shows a title above the view.
	name(title) {
		this.title.textContent = title;
		this.look();
	}
}

function open(self) {
	use(self, (problem) => {
		leave();
		live.stop();
		frame = undefined;
		replace(document.getElementById('app'), welcome(t('gate.revoked') + ' ' + (problem.body.detail || ''), open));
	});
	live.start();
	start();
	worker();
}

// start builds the frame. It is called again after a change of the language.
export function start() {
	leave();
	leave = () => {};
	frame = new Frame();
	frame.show(route());
}

addEventListener('hashchange', () => {
	if (frame) {
		frame.show(route());
		if (!frame.content.contains(document.activeElement)) frame.title.focus({preventScroll: true});
	}
});

// worker registers the service worker, which stores the page's own files for a time without network. Plain http has no
// service worker.
function worker() {
	if (!('serviceWorker' in navigator) || location.protocol !== 'https:') return;
	let address = 'sw.js';
	if (globalThis.trustedTypes) {
		const policy = trustedTypes.createPolicy('perlica', {createScriptURL: (u) => {
			if (u !== 'sw.js') throw new TypeError('not a script of this page');
			return u;
		}});
		address = policy.createScriptURL(address);
	}
	// A browser looks for a newer service worker only now and then, so the page asks for it.
	navigator.serviceWorker.register(address).then((r) => r.update()).catch(() => {});
}

async function begin() {
	await load();
	const app = document.getElementById('app');
	const code = fromAddress();
	if (!device.possible()) return replace(app, impossible());
	if (code) return replace(app, uninstalled() ? welcome('', open, code) : pairing(code, open));
	const self = await device.kept();
	if (!self) return replace(app, welcome('', open));
	open(self);
}

begin();
