// This module shows the open questions and running turns of all projects.
import {may, get} from './api.js';
import {live} from './live.js';
import {h, icon, said, replace, announce, loading, warn, choice, empty, heading} from './dom.js';
import {t, ago, lasted, name} from './i18n.js';
import {Card, place, sessionLink} from './question.js';

// stateOf makes a chip with the state of a run.
export function stateOf(r) {
	if (r.state === 'running') return h('span.chip.run', t('run.running'));
	if (r.state === 'lost') return h('span.chip.bad', t('run.lost'));
	const good = r.outcome === 'responded';
	return h('span', {class: 'chip ' + (good ? 'good' : 'bad')}, name('outcome', r.outcome || 'none'));
}

// runItem makes the entry of a run in a list.
export const runItem = (r, href) => h('li', h('a.item', {href},
	said('span.title', r.damage || r.text || t('run.pruned')),
	h('span.meta', stateOf(r), place(r), r.sender && said('span', r.sender), h('time', {datetime: r.at}, ago(r.at)),
		r.state === 'ended' && r.duration_ms > 0 && h('span', lasted(r.duration_ms)))));

const section = (title, ...more) => h('section', heading(title), ...more);

// unreadable names the logs that could not be read.
export const unreadable = (list) => list.map((u) => warn([place(u), ': ', t('log.unreadable'), ' ', said('span', u.error)]));

// whoseChoice lets a person choose between the team's logs and the logs of this machine, if there is a team.
export function whoseChoice(onchange) {
	const {el, label} = choice(t('team.whose'), 'whose', [['', t('team.here')], ['team', t('team.name')]], '', onchange);
	const place = h('div.filters', {hidden: !live.hub}, label);
	live.self.then(() => { place.hidden = !live.hub; });
	return {el: place, project: () => el.value || undefined};
}

// now shows the view.
export function now(main) {
	const cards = new Map();
	const alerts = h('div');
	const asked = h('div');
	const running = h('div');
	const recent = h('div');
	replace(main, alerts, asked, running, recent);
	let shown = -1;

	async function finished() {
		try {
			const {runs} = await get('v1/runs', {limit: 6});
			const ended = runs.filter((r) => r.state !== 'running');
			replace(recent, ended.length > 0 && section(t('now.recent'), h('ul.list', ended.map((r) => runItem(r, sessionLink(r))))));
		} catch { /* the line above says that there is no connection */ }
	}

	function look(line) {
		if (!live.known) {
			replace(asked, live.failed ? failure(live.failed) : loading());
			return;
		}
		replace(alerts, unreadable(live.unreadable));
		for (const [id, q] of live.questions) {
			if (cards.has(id)) continue;
			if (cards.size === 0) replace(asked, heading(t('now.questions')));
			const card = new Card(q);
			cards.set(id, card);
			asked.append(card.el);
			announce(t('question.new', {title: q.title}));
		}
		for (const [id, card] of cards) if (live.closed.has(id)) card.close(live.closed.get(id));
		if (cards.size === 0) replace(asked, live.runs.length === 0 && quiet());
		const key = JSON.stringify(live.runs.map((r) => [r.run_id, r.state]));
		if (key !== shown) {
			shown = key;
			replace(running, live.runs.length > 0 && section(t('now.running'), h('ul.list', live.runs.map((r) => runItem(r, sessionLink(r))))));
			finished();
		} else if (line && line.type === 'run.finished') finished();
	}

	const stop = live.watch(look);
	look();
	const timer = setInterval(() => main.querySelectorAll('time[datetime]').forEach((el) => { el.textContent = ago(el.dateTime); }), 20000);
	return () => {
		stop();
		clearInterval(timer);
		for (const c of cards.values()) c.drop();
	};
}

const quiet = () => empty('check', t('now.quiet'), t('now.quiet.why'),
	may('ask') && h('a.button.primary', {href: '#/new'}, icon('plus'), t('session.new')));

// failure shows that something could not be read.
export const failure = (err) => warn(err.lost ? t('error.lost') : err.message, '', 'alert');
