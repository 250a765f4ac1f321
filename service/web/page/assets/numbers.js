// This module shows runs, outcomes, questions and cost by day and provider.
import {get} from './api.js';
import {h, s, said, replace, loading, choice, empty} from './dom.js';
import {t, number, compact, money, name} from './i18n.js';
import {bars} from './chart.js';
import {failure, unreadable, whoseChoice} from './now.js';

const sum = (list, f) => list.reduce((n, x) => n + (f(x) || 0), 0);

// series gives each of the first three names its own colour, and one colour to all others.
const series = (names) => names.slice(0, 3).map((id, i) => ({id, name: id, kind: 'aec'[i]})).concat(names.length > 3 ? [{id: '', name: t('others'), kind: 'd'}] : []);

// byDay adds the values of all groups of each day. The function parts returns the pairs [id, n] of a group.
function byDay(days, groups, parts) {
	return days.map((day) => {
		const values = {};
		for (const g of groups.filter((x) => x.day === day)) {
			for (const [id, n] of parts(g)) values[id] = (values[id] || 0) + n;
		}
		return {day, values};
	});
}

// every lists all days from the first day of the groups to the last, at most 62.
function every(groups) {
	const all = groups.map((g) => g.day).sort();
	const out = [];
	if (!all.length) return out;
	for (let d = new Date(all[0] + 'T12:00:00Z'); out.length < 62 && d.toISOString().slice(0, 10) <= all.at(-1); d.setUTCDate(d.getUTCDate() + 1)) out.push(d.toISOString().slice(0, 10));
	return out;
}

const tile = (text, value) => h('div.tile', h('b', value), h('span', text));

function tiles(groups, costs) {
	const n = (key) => sum(groups, (g) => g[key]);
	return h('div.tiles', tile(t('numbers.runs'), number(n('runs'))), tile(t('numbers.questions'), number(n('questions'))),
		tile(t('numbers.tokens'), compact(n('input_tokens') + n('output_tokens'))), costs.map((c) => tile(t('numbers.cost'), money(sum(groups, (g) => (g.cost || {})[c]), c))));
}

// shares shows who or which rule answered questions.
function shares(logs) {
	const counted = new Map();
	for (const a of logs.flatMap((l) => l.answers)) {
		const who = a.who && a.kind === 'person' ? a.who : name('by', a.kind) + (a.who ? ': ' + a.who : '');
		counted.set(who, (counted.get(who) || 0) + a.n);
	}
	const list = [...counted].sort((a, b) => b[1] - a[1]);
	if (!list.length) return null;
	const most = list[0][1];
	return h('section.card', h('h2', t('numbers.answered')), h('ul.shares', list.slice(0, 12).map(([who, n]) => h('li', said('span', who), h('b', number(n)),
		s('svg', {class: 'track', 'aria-hidden': 'true', preserveAspectRatio: 'none', viewBox: '0 0 100 6'}, s('rect', {width: 100 * n / most, height: 6}))))));
}

function draw(body, res) {
	const groups = res.logs.flatMap((l) => l.by_day_and_provider);
	if (!groups.length) {
		replace(body, unreadable(res.unreadable), empty('numbers', t('numbers.none'), t('numbers.none.why')));
		return;
	}
	const days = every(groups);
	const total = new Map();
	for (const g of groups) total.set(g.provider, (total.get(g.provider) || 0) + g.runs);
	const names = [...total].sort((a, b) => b[1] - a[1]).map(([p]) => p);
	const providers = series(names);
	const of = (p) => names.indexOf(p) < 3 ? p : '';
	const costs = [...new Set(groups.flatMap((g) => Object.keys(g.cost || {})))];
	const outcomes = [['responded', 'a'], ['provider_errors', 'b'], ['outcome_unknown', 'c'], ['no_outcome', 'd']];
	const questions = [['allowed', 'a'], ['denied', 'b'], ['unanswered', 'd']];
	const parts = (list) => (g) => list.map(([id]) => [id, g[id]]);
	const kinds = (group, list) => list.map(([id, kind]) => ({id, kind, name: t(group + '.' + id)}));
	replace(body, unreadable(res.unreadable), tiles(groups, costs),
		bars(t('numbers.runs.day'), byDay(days, groups, (g) => [[of(g.provider), g.runs]]), providers),
		bars(t('numbers.outcomes.day'), byDay(days, groups, parts(outcomes)), kinds('numbers', outcomes)),
		bars(t('numbers.questions.day'), byDay(days, groups, parts(questions)), kinds('numbers', questions)),
		costs.map((c) => bars(t('numbers.cost.day', {currency: c}), byDay(days, groups, (g) => [[of(g.provider), (g.cost || {})[c] || 0]]), providers, (n) => money(n, c))),
		shares(res.logs));
}

// numbers shows the view.
export function numbers(main) {
	const period = choice(t('record.when'), 'days', [['7', t('record.week')], ['30', t('record.month')], ['', t('record.ever')]], '30', () => load());
	const body = h('div');
	const whose = whoseChoice(() => load());
	replace(main, whose.el, h('p.filters', {id: 'period'}, period.label), body);

	async function load() {
		replace(body, loading());
		const since = period.el.value && new Date(Date.now() - Number(period.el.value) * 86400000).toISOString();
		try {
			const project = whose.project();
			const chosen = period.el.value;
			const res = await get('v1/stats', {since, project, zone: Intl.DateTimeFormat().resolvedOptions().timeZone});
			if (chosen === period.el.value && project === whose.project()) draw(body, res);
		} catch (err) {
			replace(body, failure(err));
		}
	}
	load();
}
