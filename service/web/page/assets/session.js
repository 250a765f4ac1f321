// This module shows a session: its recorded turns, the running turn as it arrives, and the form for the next input.
import {get, post, may, Events} from './api.js';
import {h, icon, said, replace, announce, soon, loading, warn, choice} from './dom.js';
import {t} from './i18n.js';
import {live} from './live.js';
import {failure} from './now.js';
import {place, sessionLink} from './question.js';
import {Composer} from './compose.js';
import {Turn} from './turn.js';

// slice is the time in milliseconds that the page may spend on events before it draws.
const slice = 8;
// several is the number of turns that are read at once.
const several = 4;

class Session {
	constructor(main, id, where, frame) {
		Object.assign(this, {main, id, where, frame});
		this.turns = new Map();
		this.backlog = [];
		this.queued = new Map(); // inputs that wait for a turn, by id
		this.about = h('p.meta');
		this.older = h('p.row');
		this.list = h('div');
		this.waiting = h('div');
		this.loading = loading();
		this.choices = choices();
		this.composer = new Composer(id, () => ({...where, session: id, ...this.choices.said()}), (a, body) => this.sent(a, body));
		this.composer.form.prepend(this.choices.el);
		this.newest = h('button', {class: 'newest', hidden: true, onclick: () => this.toEnd()}, icon('down'), t('session.newest'));
		replace(main, this.about, this.older, this.loading, this.list, this.waiting);
		frame.content.append(...(where.project === 'team' ? [] : [this.composer.el]), this.newest); // a worker's session continues at the worker
		this.composer.typed();
		this.end = true; // true if the end of the session is on the screen
		this.scrolled = () => {
			const near = innerHeight + scrollY > document.documentElement.scrollHeight - 160;
			if (near || scrollY < this.at - 4) this.end = near; // growing content also moves the end away
			this.at = scrollY;
			if (this.end) this.newest.hidden = true;
		};
		addEventListener('scroll', this.scrolled, {passive: true});
		this.unwatch = live.watch(() => this.look());
		this.sizes = new ResizeObserver(() => this.follow());
		this.sizes.observe(this.list);
		this.open();
	}

	close() {
		this.closed = true;
		removeEventListener('scroll', this.scrolled);
		this.unwatch();
		this.sizes.disconnect();
		if (this.events) this.events.close();
		if (this.eye) this.eye.disconnect();
		for (const turn of this.turns.values()) turn.drop();
	}

	async open() {
		try {
			const {cursor} = await get('v1/events', {...this.where, session: this.id, limit: 1});
			await this.read();
			if (this.closed) return;
			this.loading.remove();
			this.toEnd();
			this.events = new Events({...this.where, session: this.id}, cursor, {
				open: () => {},
				event: (line) => this.took(line),
				reset: () => location.reload(),
				state: (word) => word === 'live' && this.queued.size && this.again(),
			});
			this.eye = new IntersectionObserver((all) => all.some((e) => e.isIntersecting) && this.next && this.read(this.next));
			this.eye.observe(this.older);
		} catch (err) {
			replace(this.loading, failure(err));
		}
	}

	// read reads recorded turns: the newest ones, or the ones before them.
	async read(page) {
		if (this.reading) return;
		this.reading = true;
		this.next = undefined;
		try {
			const s = await get('v1/sessions/' + encodeURIComponent(this.id), {...this.where, limit: several, page});
			if (!page) this.named(s);
			const turns = s.turn_list.filter((r) => !this.turns.has(r.run_id)).map((r) => this.turn(r));
			const before = document.documentElement.scrollHeight;
			const at = scrollY;
			this.list.prepend(...turns.map((x) => x.el));
			for (const x of [...turns].reverse()) await this.fill(x);
			if (page && scrollY === at) scrollBy(0, document.documentElement.scrollHeight - before);
			this.next = s.next;
			replace(this.older, s.next && h('button', {class: 'quiet', onclick: () => this.read(s.next)}, t('session.older')));
			if (!page && turns.length === 0) this.none();
		} finally {
			this.reading = false;
		}
	}

	named(s) {
		this.provider = s.provider;
		if (may('ask')) this.choices.offer(s.offers);
		this.frame.name(s.name || s.title || t('session.unnamed'));
		replace(this.about, place(s), said('span', s.provider), h('span', t('turns.n', {n: s.turns})));
	}

	// again reads the current models and modes, because an agent reports them only when it runs. An input that no
	// longer waits was not sent, unless its turn appears later.
	async again() {
		const waited = [...this.queued.values()];
		const s = await get('v1/sessions/' + encodeURIComponent(this.id), {...this.where, limit: 1}).catch(() => undefined);
		if (!s || this.closed) return;
		this.named(s);
		for (const q of waited) q.lost = !s.inputs.includes(q.id);
		this.showQueued();
	}

	none() { replace(this.list, h('div.empty', icon('sessions'), h('p', t('session.empty')))); }

	turn(run) {
		const turn = new Turn(run);
		this.turns.set(run.run_id, turn);
		return turn;
	}

	// fill reads the recorded events of a turn.
	async fill(turn) {
		for (let after = '0', more = true; more && !this.closed;) {
			const page = await get('v1/events', {...this.where, run: turn.id, after, limit: 1000});
			for (const line of page.events) this.backlog.push(line);
			await this.drained();
			({cursor: after, more} = page);
		}
	}

	took(line) {
		this.backlog.push(line);
		this.pump();
	}

	drained() {
		this.pump();
		return new Promise((resolve) => { this.empty = resolve; });
	}

	// pump shows the arrived events for a part of each frame.
	pump() {
		if (this.pumping) return;
		this.pumping = true;
		const step = () => {
			const until = performance.now() + slice;
			const touched = new Set();
			let i = 0;
			while (i < this.backlog.length && performance.now() < until) this.show(this.backlog[i++], touched);
			this.backlog.splice(0, i);
			for (const turn of touched) turn.settle(false);
			this.follow();
			if (this.backlog.length && !this.closed) {
				soon(step);
				return;
			}
			this.pumping = false;
			if (this.empty) this.empty();
			this.empty = undefined;
		};
		soon(step);
	}

	show(line, touched) {
		let turn = this.turns.get(line.run_id);
		if (!turn && line.type === 'run.received') {
			if (this.turns.size === 0) replace(this.list);
			turn = this.turn(line);
			this.list.append(turn.el);
			this.unqueue(line.input_id);
		}
		if (!turn || !turn.take(line)) return;
		touched.add(turn);
		if (line.type === 'run.finished') {
			announce(t('run.ended'));
			this.again();
		}
		if (line.type.startsWith('run.')) this.look();
	}

	// look updates the questions and the buttons.
	look() {
		for (const turn of this.turns.values()) turn.ask();
		const running = live.runs.find((r) => r.session_id === this.id && r.state === 'running') ||
			[...this.turns.values()].filter((x) => x.open && x.last > 0).map((x) => ({run_id: x.id}))[0];
		const id = running && running.run_id;
		if (id !== this.running) this.composer.mode(Boolean(id), (button) => this.stop(id, button));
		this.running = id;
	}

	async stop(id, button) {
		button.disabled = true;
		try {
			await post('v1/runs/' + encodeURIComponent(id) + '/cancel?' + new URLSearchParams(this.where), {});
		} catch (err) {
			button.disabled = false;
			this.composer.say(err.lost ? t('error.lost') : err.message);
		}
	}

	sent(answer, body) {
		this.end = true;
		const id = answer.input_id;
		if (answer.state === 'queued') this.queued.set(id, {id, body});
		else this.queued.delete(id);
		this.showQueued();
	}

	// resend sends an unsent input again under its id, so that it is called at most once.
	async resend(q, button) {
		button.disabled = true;
		try {
			this.sent(await post('v1/inputs', q.body, {'Idempotency-Key': q.id}), q.body);
		} catch (err) {
			button.disabled = false;
			this.composer.say(err.lost ? t('compose.lost') : err.message);
		}
	}

	unqueue(input) {
		if (this.queued.delete(input)) this.showQueued();
	}

	showQueued() {
		replace(this.waiting, [...this.queued.values()].map((q) => h('div.asked', h('div.who', q.lost ? h('span.chip.bad', t('compose.failed')) : h('span.chip', t('session.queued'))),
			said('div.words', q.body.text), q.lost && h('button', {onclick: (e) => this.resend(q, e.currentTarget)}, t('pair.again')))));
		this.follow();
	}

	// follow keeps the end on the screen if it was there.
	follow() {
		if (!this.events) return;
		if (this.end) this.place();
		else this.newest.hidden = false;
	}

	// place scrolls to the end, or to the beginning of an open question. The page then does not scroll by itself until
	// this question is closed.
	place() {
		const card = this.list.querySelector('.question:not(.closed)');
		if (card && card === this.placed) return;
		this.placed = card;
		const end = document.documentElement.scrollHeight - innerHeight;
		const top = card ? scrollY + card.getBoundingClientRect().top - 64 : end;
		scrollTo({top: Math.min(end, top), behavior: 'instant'});
	}

	toEnd() {
		this.end = true;
		this.newest.hidden = true;
		this.placed = undefined;
		this.place();
	}
}

// choices shows the models and modes that the agent offers. said returns the chosen ones. A choice stays while the
// agent offers it. A repeated equal offer changes nothing, because a person may be choosing.
function choices() {
	const box = h('details.choices', {hidden: true});
	let model;
	let mode;
	let offered;
	return {
		el: box,
		offer(o) {
			if (offered === JSON.stringify(o)) return;
			offered = JSON.stringify(o);
			const of = (name, list, now, chosen) => list.length > 1 && choice(t(name), name, [['', now ? t('choice.now', {now: (list.find(([id]) => id === now) || [0, now])[1]}) : t('choice.own')], ...list.filter(([id]) => id !== now)], (chosen && chosen.el.value) || '');
			model = o && of('model', o.models.map((m) => [m, m]), o.model, model);
			mode = o && of('mode', o.modes.map((m) => [m.id, m.name || m.id]), o.mode, mode);
			box.hidden = !model && !mode;
			replace(box, h('summary', t('choice')), h('div.filters', model && model.label, mode && mode.label));
		},
		said: () => ({model: model && model.el.value || undefined, mode: mode && mode.el.value || undefined}),
	};
}

// session shows the view of one session, or the form for a new session.
export function session(main, route, frame) {
	if (!route.id) return fresh(main, frame);
	const s = new Session(main, route.id, {project: route.query.project, context: route.query.context}, frame);
	return () => s.close();
}

// fresh asks for the project, the agent and the permissions of a new session.
function fresh(main, frame) {
	frame.name(t('session.new'));
	const project = choice(t('project'), 'project', [], '', () => agents());
	const provider = choice(t('provider'), 'provider', [], '', () => offer());
	const more = choices();
	const permissions = choice(t('permissions'), 'permissions', ['', 'ask', 'reads', 'deny'].map((p) => [p, t('permissions.' + (p || 'own'))]));
	const alerts = h('div');
	replace(main, alerts, h('section.card', h('div.filters', [project, provider, permissions].map((c) => h('div.whole', c.label))), more.el),
		h('div.empty', h('p', t('session.new.why'))));
	let contexts = [];
	let usable = [];
	const offer = () => more.offer((usable.find((p) => provider.el.value ? p.id === provider.el.value : p.default) || {}).offers);

	async function agents() {
		const c = contexts[project.el.selectedIndex];
		const {providers} = await get('v1/providers', {project: c.project, context: c.context});
		usable = providers.filter((p) => p.state === 'installed');
		replace(provider.el, h('option', {value: ''}, t('provider.default')), usable.map((p) => h('option', {value: p.id}, p.name || p.id)));
		offer();
	}

	(async () => {
		try {
			contexts = (await get('v1/contexts')).contexts.filter((c) => !c.gone && !c.error);
			replace(project.el, contexts.map((c, i) => h('option', {value: String(i)}, c.project.split('/').pop() + ' — ' + c.project + (c.context === 'default' ? '' : ' · ' + c.context))));
			if (contexts.length === 0) replace(alerts, warn(t('projects.none'), 'ask'));
			else await agents();
		} catch (err) {
			replace(alerts, failure(err));
		}
	})();
	const composer = new Composer('new', () => {
		const c = contexts[project.el.selectedIndex];
		return c && {project: c.project, context: c.context, provider: provider.el.value || undefined, permissions: permissions.el.value || undefined, ...more.said()};
	}, (a) => { location.hash = sessionLink(a); });
	frame.content.append(composer.el);
	composer.typed();
	composer.text.focus();
	return () => {};
}
