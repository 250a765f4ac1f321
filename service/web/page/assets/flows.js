// This module shows flows: the list of flow runs, the form that starts one, and the graph of one while it goes on.
import {get, post, may, Events} from './api.js';
import {h, s, icon, said, replace, announce, dialog, soon, loading, warn, choice, empty, heading} from './dom.js';
import {t, ago, clock, lasted, money, name} from './i18n.js';
import {live} from './live.js';
import {failure, unreadable} from './now.js';
import {Card, place, runLink} from './question.js';

// types lists the events after which the state of a flow run is read again.
const types = ['flow.started', 'flow.step', 'flow.ended', 'run.started', 'run.finished', 'question', 'answer', 'session.freed'];

// rest is the shortest time between two readings, and beat the time after which a visible view reads without an event,
// in milliseconds. The end of the process that drives a flow run causes no event.
const rest = 300;
const beat = 5000;

// tone is the class of a state.
const tone = {running: 'run', asked: 'ask', unknown: 'ask', done: 'good', failed: 'bad', cancelled: 'bad'};
const stateChip = (word) => h('span', {class: 'chip ' + (tone[word] || '')}, name('flowstate', word || 'unread'));

const flowLink = (x) => '#/flow/' + encodeURIComponent(x.id) + '?' + new URLSearchParams({project: x.project, context: x.context});
const at = (x) => ({project: x.project, context: x.context});
const query = (x) => '?' + new URLSearchParams(at(x));

// Follower calls the function read after each event and now and then, but one call at a time.
class Follower {
	constructor(where, read) {
		this.read = read;
		this.events = new Events({...where, type: types}, undefined, {
			open: () => this.look(), reset: () => this.look(), event: () => this.look(), state: () => {},
		});
		this.timer = setInterval(() => document.visibilityState === 'visible' && this.look(), beat);
	}

	async look() {
		this.again = this.busy;
		if (this.busy || this.over) return;
		this.busy = true;
		const began = performance.now();
		await this.read();
		const took = performance.now() - began;
		setTimeout(() => {
			this.busy = false;
			if (this.again) this.look();
		}, Math.max(rest, 3 * took));
	}

	close() {
		this.over = true;
		this.events.close();
		clearInterval(this.timer);
	}
}

// flows shows the list of flow runs.
export function flows(main) {
	const alerts = h('div');
	const body = h('section', loading());
	const more = h('p.row');
	const elsewhere = h('p.small.dim', {hidden: true}, t('flows.elsewhere'));
	live.self.then(() => {
		elsewhere.hidden = !live.hub;
	});
	replace(main, may('ask') && h('p.row', {id: 'start'}, h('a.button.primary', {href: '#/flow'}, icon('plus'), t('flows.start'))), alerts, body, more, elsewhere);
	let pages = 1;
	let shown = '';

	const item = (r) => h('li', h('a.item', {href: flowLink(r)}, h('span.title', said('span', r.name || r.id)),
		h('span.meta', stateChip(r.state), place(r), said('span', r.id), h('time', {datetime: r.started}, ago(r.started)),
			r.ended && h('span', lasted(new Date(r.ended) - new Date(r.started))))));

	const follower = new Follower({}, async () => {
		try {
			const list = [];
			let res = {};
			for (let i = 0; i < pages && (i === 0 || res.next); i++) {
				res = await get('v1/flow-runs', {limit: 30, page: res.next});
				list.push(...res.flow_runs);
			}
			const now = JSON.stringify([list, res.next]);
			if (now === shown) return;
			shown = now;
			replace(alerts, unreadable(res.unreadable));
			replace(body, list.length ? h('ul.list', list.map(item)) : empty('flows', t('flows.none'), t('flows.none.why')));
			replace(more, res.next && h('button', {onclick: () => {
				pages++;
				follower.look();
			}}, t('more')));
		} catch (err) {
			replace(alerts, failure(err));
		}
	});
	follower.look();
	return () => follower.close();
}

// flow shows one flow run, or the form that starts one.
export function flow(main, route, frame) {
	if (!route.id) return form(main, frame);
	const view = new Run(main, {id: route.id, project: route.query.project, context: route.query.context}, frame);
	return () => view.close();
}

// Field is a field of the form for an input of a flow.
class Field {
	constructor(input, changed) {
		this.input = input;
		const id = 'in-' + input.name;
		const rows = Math.min((input.default || '').split('\n').length, 8);
		this.text = h('textarea', {id, rows, dir: 'auto', value: input.default || '', 'aria-describedby': id + '-hint ' + id + '-fault', oninput: () => {
			this.fault('');
			changed();
		}});
		this.alert = h('p.fault', {id: id + '-fault', role: 'alert'});
		this.el = h('div.field', h('label', {for: id}, said('span', input.name), ' ', input.default === undefined && h('span.dim', t('flows.required'))),
			h('p.small.dim', {id: id + '-hint'}, input.description && said('span', input.description)), this.text, this.alert);
	}

	fault(words) {
		this.text.setAttribute('aria-invalid', String(Boolean(words)));
		replace(this.alert, words && icon('warn'), words && h('span', words));
	}

	// check reports whether the field has the text that it needs.
	check() {
		const missing = this.input.default === undefined && !this.text.value;
		this.fault(missing ? t('flows.missing') : '');
		return !missing;
	}
}

// form shows the form that starts a flow.
function form(main, frame) {
	frame.name(t('flows.start'));
	const alerts = h('div');
	const body = h('div.fields');
	const project = choice(t('project'), 'project', [], '', () => files());
	const kind = choice(t('flows.flow'), 'flow', [], '', () => fields());
	const permissions = choice(t('permissions'), 'permissions', ['', 'ask', 'reads', 'deny'].map((p) => [p, t('permissions.' + (p || 'own'))]));
	const fault = h('div', {role: 'alert'});
	const go = h('button.primary', icon('flows'), t('flows.go'));
	const el = h('form.card', {novalidate: true, onsubmit: (e) => {
		e.preventDefault();
		send();
	}}, h('div.filters', [project, kind].map((c) => h('div.whole', c.label))), body, h('div.filters', h('div.whole', permissions.label)), fault, h('p.row', go));
	replace(main, alerts, loading());
	let contexts = [];
	let list = [];
	let shown = [];
	let id = '';
	let lost = false; // the last start may have arrived, so it keeps its id
	let newest = 0; // only the answer to the newest request is shown

	const changed = () => {
		if (!lost) id = '';
	};

	async function files() {
		const mine = ++newest;
		const c = contexts[project.el.selectedIndex];
		try {
			const res = await get('v1/flows', at(c));
			if (mine !== newest) return;
			list = res.flows;
			replace(kind.el, list.map((f) => h('option', {value: f.flow}, f.flow)));
			fields();
		} catch (err) {
			if (mine === newest) replace(body, failure(err));
		}
	}

	function fields() {
		const f = list[kind.el.selectedIndex];
		id = '';
		lost = false;
		shown = f ? f.inputs.map((x) => new Field(x, changed)) : [];
		go.disabled = !f || Boolean(f.error);
		kind.label.hidden = !f;
		replace(fault);
		replace(body, !f && empty('flows', t('flows.nofile'), t('flows.nofile.why')), f && f.description && said('p', f.description),
			f && f.error && warn(said('span', f.error)), f && !f.error && h('p.small.dim', t('flows.steps.n', {n: f.steps})), shown.map((x) => x.el));
	}

	async function send() {
		const f = list[kind.el.selectedIndex];
		const c = contexts[project.el.selectedIndex];
		const wrong = shown.filter((x) => !x.check());
		if (wrong.length) return wrong[0].text.focus();
		id ||= f.name + '-' + crypto.randomUUID().slice(0, 13);
		go.disabled = true;
		replace(fault);
		try {
			const inputs = Object.fromEntries(shown.map((x) => [x.input.name, x.text.value]));
			location.hash = flowLink(await post('v1/flow-runs', {...at(c), id, flow: f.flow, digest: f.digest, inputs, permissions: permissions.el.value || undefined}));
		} catch (err) {
			lost = err.lost;
			const field = shown.find((x) => x.input.name === err.body?.field);
			if (field) {
				field.fault(err.message);
				field.text.focus();
			} else replace(fault, failure(err), lost && h('p.small', t('flows.lost')));
		}
		go.disabled = false;
	}

	(async () => {
		try {
			contexts = (await get('v1/contexts')).contexts.filter((c) => !c.gone && !c.error);
			replace(project.el, contexts.map((c, i) => h('option', {value: String(i)}, c.project.split('/').pop() + ' — ' + c.project + (c.context === 'default' ? '' : ' · ' + c.context))));
			if (contexts.length) await files();
			replace(main, contexts.length ? el : warn(t('projects.none'), 'ask'));
		} catch (err) {
			replace(main, failure(err));
		}
	})();
}

// costs returns the costs of steps and items, added by currency.
function costs(units) {
	const sums = {};
	for (const {cost: c} of units) if (c) sums[c.currency] = (sums[c.currency] || 0) + c.amount;
	return Object.entries(sums).map(([currency, amount]) => h('span', money(amount, currency)));
}

const units = (step) => [step, ...(step.items || [])];
const lost = (run) => run.steps.flatMap(units).some((u) => u.state === 'unknown');
const time = (step) => units(step).reduce((sum, u) => sum + (u.duration_ms || 0), 0);

// Run is the view of one flow run.
class Run {
	constructor(main, where, frame) {
		Object.assign(this, {main, where, frame});
		this.path = 'v1/flow-runs/' + encodeURIComponent(where.id);
		this.steps = new Map(); // the shown steps, by id
		this.cards = new Map(); // the shown questions, by id
		this.alerts = h('div', {role: 'alert'});
		this.head = h('section', loading());
		this.asked = h('div');
		this.sums = h('span.meta'); // the costs of all steps
		this.edges = s('svg', {class: 'edges', 'aria-hidden': 'true'});
		this.levels = h('ol.levels');
		this.graph = h('section.graph', {'aria-label': t('flows.graph'), hidden: true}, this.edges, this.levels);
		replace(main, this.alerts, this.head, this.asked, this.graph);
		this.sizes = new ResizeObserver(() => soon(() => this.draw()));
		this.sizes.observe(this.graph);
		this.unwatch = live.watch(() => this.questions());
		this.follower = new Follower(at(where), () => this.read());
		this.follower.look();
	}

	close() {
		this.follower.close();
		this.unwatch();
		this.sizes.disconnect();
		for (const c of this.cards.values()) c.drop();
	}

	async read() {
		try {
			const r = await get(this.path, at(this.where));
			if (this.follower.over) return;
			if (this.fault) replace(this.alerts);
			this.fault = false;
			this.show(r);
		} catch (err) {
			if (this.follower.over) return;
			this.fault = true;
			replace(this.alerts, failure(err));
			if (!this.run) replace(this.head);
		}
	}

	show(r) {
		const before = this.run;
		this.run = r;
		Object.assign(this.where, at(r)); // an address without a project is valid, too
		if (!before) this.lay();
		if (!before || before.state !== r.state || before.fault !== r.fault || lost(before) !== lost(r)) {
			this.about();
			if (before) announce(t('flows.said', {what: r.name, state: name('flowstate', r.state)}));
		}
		for (const step of r.steps) this.steps.get(step.step).show(step);
		replace(this.sums, costs(r.steps.flatMap(units)));
		this.questions();
		soon(() => this.draw());
	}

	// about shows the flow run itself.
	about() {
		const r = this.run;
		this.frame.name(r.name);
		const facts = [[t('flows.run'), h('span.mono', r.id)], [t('flows.by'), said('span', r.by)],
			...Object.entries(r.inputs || {}).map(([k, v]) => [said('span', k), said('div.words', v)])];
		const open = !r.ended && may('ask');
		replace(this.head, h('div.card', h('p.meta', stateChip(r.state), place(r), h('time', {datetime: r.started, title: clock(r.started)}, ago(r.started)),
			r.ended && h('span', lasted(new Date(r.ended) - new Date(r.started))), this.sums),
		r.fault && warn(said('span', r.fault)), !r.ended && r.state !== 'running' && h('p.small', t('flows.rests')),
		lost(r) && warn(t('flows.unknown'), 'ask'),
		h('details', h('summary', t('flows.details')), h('dl.facts', facts.map(([k, v]) => [h('dt', k), h('dd', v)]))),
		open && h('p.row', r.state !== 'running' && h('button.primary', {onclick: (e) => this.act(e.currentTarget, () => this.go())}, t('flows.continue')),
			h('button.danger', {onclick: (e) => this.end(e.currentTarget)}, icon('stop'), t('flows.cancel')))));
	}

	// lay makes the steps. The level of a step is the length of the longest chain of steps before it.
	lay() {
		const level = new Map();
		const by = new Map(this.run.steps.map((step) => [step.step, step]));
		const depth = (id) => {
			if (!level.has(id)) level.set(id, Math.max(0, ...by.get(id).needs.map((n) => depth(n) + 1)));
			return level.get(id);
		};
		const levels = [];
		for (const step of this.run.steps) {
			const shown = new Step(this, step);
			this.steps.set(step.step, shown);
			(levels[depth(step.step)] ||= []).push(shown.el);
		}
		replace(this.levels, levels.map((all) => h('li', h('ul.level', all))));
		this.graph.hidden = false;
	}

	// draw draws the lines between the steps. A narrow screen has no lines; each step also names the steps that it needs.
	draw() {
		const box = this.graph.getBoundingClientRect();
		const paths = [];
		if (this.run && innerWidth >= 600) {
			const places = new Map([...this.steps].map(([id, x]) => [id, x.el.getBoundingClientRect()]));
			for (const step of this.run.steps) {
				const to = places.get(step.step);
				for (const id of step.needs) {
					const from = places.get(id);
					const [x1, y1, x2, y2] = [from.left + from.width / 2 - box.left, from.bottom - box.top, to.left + to.width / 2 - box.left, to.top - box.top];
					const middle = (y1 + y2) / 2;
					paths.push(s('path', {class: tone[this.steps.get(id).step.state] || '', d: 'M' + [x1, y1] + 'C' + [x1, middle, x2, middle, x2, y2]}));
				}
			}
		}
		replace(this.edges, paths);
	}

	// questions shows the open questions of the flow run and of its calls.
	questions() {
		if (!this.run) return;
		const flowRun = 'flow:' + this.run.id;
		const runs = new Set(this.run.steps.flatMap(units).map((u) => u.run_id));
		for (const [id, q] of live.questions) {
			if (this.cards.has(id) || q.project !== this.run.project || q.context !== this.run.context) continue;
			if (!(q.run_id === flowRun || q.run_id.startsWith(flowRun + '/') || runs.has(q.run_id))) continue;
			const card = new Card(q);
			this.cards.set(id, card);
			if (!this.asked.firstChild) replace(this.asked, heading(t('now.questions')));
			this.asked.append(card.el);
			announce(t('question.new', {title: q.title}));
		}
		for (const [id, card] of this.cards) if (live.closed.has(id)) card.close(live.closed.get(id));
	}

	// act calls the function f while the button is disabled, and shows its error.
	async act(button, f) {
		button.disabled = true;
		replace(this.alerts);
		try {
			await f();
			this.follower.look();
		} catch (err) {
			replace(this.alerts, failure(err));
		}
		button.disabled = false;
	}

	// go continues the flow run with the same file and the same inputs. The name of the file is not on record, so the
	// digest finds it.
	async go() {
		const r = this.run;
		if (r.team) {
			replace(this.alerts, warn([t('flows.byteam'), ' ', h('code', 'perlica flow run FILE --team --id ' + r.id)], 'ask', 'alert'));
			return;
		}
		const {flows: list} = await get('v1/flows', at(r));
		const f = list.find((x) => x.digest === r.digest);
		if (!f) {
			replace(this.alerts, warn([t('flows.nosame'), ' ', h('code', 'perlica flow run FILE --id ' + r.id)], 'ask', 'alert'));
			return;
		}
		await post('v1/flow-runs', {...at(r), id: r.id, flow: f.flow, digest: f.digest, inputs: r.inputs || {}});
	}

	async end(button) {
		if (await sure(t('flows.cancel'), t('flows.cancel.why'))) await this.act(button, () => post(this.path + '/cancel' + query(this.where), {}));
	}

	// retry lets a step or an item call again. A flow run that no process drives continues then.
	async retry(button, step, item) {
		if (!await sure(t('flows.retry'), t('flows.retry.why'))) return;
		await this.act(button, async () => {
			await post(this.path + '/retry' + query(this.where), {step, item});
			if (this.run.state !== 'running') await this.go();
		});
	}
}

const sure = async (what, why) => await dialog(h('h2', what), h('p', why),
	h('div.options', h('button', {value: 'back'}, t('back')), h('button', {value: 'yes', class: 'no'}, what))) === 'yes';

// Step is a step of the graph.
class Step {
	constructor(run, step) {
		Object.assign(this, {run, id: step.step});
		this.head = h('div.row.apart');
		this.body = h('div');
		this.list = h('ul.units');
		this.items = step.kind === 'loop' && h('details', {hidden: true, ontoggle: () => this.fill()}, h('summary', t('flows.items')), this.list);
		this.el = h('li.stepbox', {id: 'step-' + step.step}, this.head, this.body, this.items);
		this.most = 100; // shown items
	}

	show(step) {
		const now = JSON.stringify(step);
		if (now === this.shown) return;
		this.shown = now;
		this.step = step;
		this.el.className = 'stepbox ' + (tone[step.state] || '');
		replace(this.head, said('h2', step.step), stateChip(step.state));
		const all = step.items || [];
		const n = (state) => all.filter((u) => u.state === state).length;
		const failed = n('failed');
		const focused = this.body.contains(document.activeElement);
		replace(this.body, h('p.meta', step.kind !== 'call' && h('span', t('stepkind.' + step.kind)),
			all.length > 0 && h('span', t('flows.progress', {done: n('done'), all: all.length})), failed > 0 && h('span.bad', t('flows.failed', {n: failed})),
			time(step) > 0 && h('span', lasted(time(step))), costs(units(step)), step.needs.length > 0 && h('span', t('flows.after', {steps: step.needs.join(', ')}))),
		this.result(step, 0));
		if (focused) this.body.querySelector('a, button')?.focus();
		if (this.items) {
			this.items.hidden = all.length === 0;
			this.fill();
		}
	}

	// result shows the answer, the error and the run of a step or of an item.
	result(u, item) {
		const again = (u.state === 'failed' || u.state === 'unknown') && (u.run_id || u.state === 'unknown') && !(this.step.items && !item) && may('ask');
		const inner = this.step.kind === 'flow' && u.state !== 'waiting' && u.state !== 'skipped';
		const link = inner ? flowLink({...this.run.where, id: u.input_id.replace(/^flow:/, '')}) : u.run_id && !u.worker && runLink({...this.run.where, run_id: u.run_id});
		const of = this.id + (item ? ' ' + item : '');
		return [u.worker && h('p.small.dim', t('flows.worker', {name: u.worker})), u.answer && h('p.small', t('flows.answer'), ' ', said('b', u.answer)), u.error && (u.state === 'skipped' ? said('p.small.dim', u.error) : h('p.remark.bad', icon('warn'), said('span', u.error))),
			(link || again) && h('p.row', link && h('a.button.quiet', {href: link, 'aria-label': t('line', {what: t(inner ? 'flows.inner' : 'flows.call'), detail: of})}, t(inner ? 'flows.inner' : 'flows.call')),
				again && h('button.danger', {'aria-label': t('line', {what: t('flows.retry'), detail: of}), onclick: (e) => this.run.retry(e.currentTarget, this.id, item)}, t('flows.retry')))];
	}

	// fill shows the items of an open loop.
	fill() {
		const all = this.step.items || [];
		if (!this.items.open) return;
		replace(this.list, all.slice(0, this.most).map((u) => h('li', h('p.meta', h('span', t('flows.item', {n: u.item})), stateChip(u.state),
			u.duration_ms > 0 && h('span', lasted(u.duration_ms)), costs([u])), this.result(u, u.item))),
		all.length > this.most && h('li', h('button.quiet', {onclick: () => {
			this.most += 100;
			this.fill();
		}}, t('more'))));
	}
}
