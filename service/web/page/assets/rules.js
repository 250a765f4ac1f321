// This module shows the rules that follow from a person's answers, and tries rules against the record. It changes nothing:
// a person copies the rules into the configuration.
import {get, post} from './api.js';
import {h, icon, said, replace, announce, loading, warn, choice, empty, heading} from './dom.js';
import {t, clock, name, number} from './i18n.js';
import {failure, unreadable} from './now.js';
import {place, runLink} from './question.js';
import {code} from './markdown.js';
import {periodChoice, since} from './changes.js';

// evidence says from which answers a rule follows.
const evidence = (r, all) => [t(r.denied ? 'rules.denied.n' : 'rules.allowed.n', {n: r.denied || r.allowed}), ' · ', t('rules.against.n', {n: r.denied ? r.allowed : r.denied}),
	all && [' · ', t('rules.projects.n', {n: r.projects})]];

// rest counts the questions that no suggested rule answers.
const rest = (s) => ['decided', 'mixed', 'unanswered', 'careful', 'no_rule', 'unjudged'].filter((k) => s[k] > 0).map((k) => h('li', t('suggest.' + k, {n: number(s[k])})));

// what shows the request that was judged.
const what = (j) => j.commands ? j.commands.map((c) => said('pre.output', c, {dir: 'ltr'})) :
	[said('p', j.title || ''), (j.paths || []).filter((p) => !(j.title || '').endsWith(p)).map((p) => said('p.small.mono', p, {dir: 'ltr'}))];

const answerOf = (j) => name('answered', ['allowed', 'denied', 'open'].includes(j.answer) ? j.answer : '') || name('reason', j.answer);

// judged makes the entry of a question with its recorded answer and its new decision.
const judged = (j, context) => h('li', {class: 'item ' + (j.against ? 'against' : '')}, what(j),
	h('p.meta', h('span', {class: 'chip ' + (j.answer === 'allowed' ? 'good' : 'bad')}, t('rules.was', {answer: answerOf(j), by: j.person ? j.by || '' : name('by', j.by)})),
		j.now && h('span', {class: 'chip ' + ({allow: 'good', deny: 'bad'}[j.now] || 'ask')}, t('rules.now', {effect: t('effect.' + j.now)})),
		place(j), h('time', {datetime: j.asked}, clock(j.asked)), h('a', {href: runLink({...j, context}), 'aria-label': t('line', {what: t('fact.run'), detail: j.title || j.run_id})}, t('fact.run'))),
	j.why && said('p.small.dim', j.why));

// groups are the parts of the list of a trial, in its order.
const groups = [['against', (j) => j.against], ['saved', (j) => j.person && ['allow', 'deny'].includes(j.now)], ['changed', (j) => !j.why], ['unjudged', () => true]];
const groupOf = (j) => groups.find(([, is]) => is(j))[0];

// rules shows the view.
export function rules(main, route, frame) {
	const where = {project: route.query.project, context: route.query.context};
	frame.name(t('rules'));
	const whose = choice(t('project'), 'project', [['', t('rules.all')], where.project && ['one', where.project.split('/').pop()]].filter(Boolean), where.project ? 'one' : '', () => suggest());
	const period = periodChoice('', () => suggest());
	const text = h('textarea', {id: 'rules', rows: '4', spellcheck: 'false', dir: 'ltr', 'aria-describedby': 'rules-hint'});
	const instead = h('input', {type: 'checkbox', id: 'instead'});
	const out = h('section', {'aria-live': 'polite'});
	const found = h('section', loading());
	replace(main, h('p.small', t('rules.reads')), h('div.card', h('div.filters', whose.label, period.label)), found, h('form.card', {onsubmit: (e) => {
		e.preventDefault();
		attempt();
	}}, h('h2', t('rules.try')), h('label', {for: 'rules'}, t('rules.text')), h('p.small.dim', {id: 'rules-hint'}, t('rules.hint')), text,
	h('label.check', instead, t('rules.instead')), h('p.row', h('button.primary', icon('check'), t('rules.go')))), out);

	const chosen = () => ({...(whose.el.value ? where : {}), since: since(Number(period.el.value))});
	let newest = 0; // only the answer to the newest request is shown

	async function suggest() {
		const mine = ++newest;
		replace(found, loading());
		try {
			const s = await get('v1/policy/suggest', chosen());
			if (mine !== newest) return;
			replace(found, unreadable(s.unreadable), heading(t('suggest')), h('p', t('suggest.n', {n: number(s.answered), all: number(s.questions)})), h('ul.small.dim', rest(s)),
				s.rules.length ? s.rules.map((r) => h('div.card', h('p', evidence(r, !whose.el.value)), code(r.toml, 'TOML'), h('p.row', h('button', {onclick: () => {
					text.value = r.toml;
					attempt();
				}}, t('rules.this'))))) : empty('shield', t('suggest.none'), t('suggest.none.why')));
		} catch (err) {
			if (mine === newest) replace(found, failure(err));
		}
	}

	async function attempt() {
		const rows = text.value.split('\n').map((l) => l.trim()).filter(Boolean);
		if (!rows.length) return text.focus();
		const body = {...chosen(), replace: instead.checked, ...(text.value.includes('[[') ? {toml: text.value} : {rules: rows})};
		replace(out, loading());
		try {
			const res = await post('v1/policy/try', body);
			const title = t('trial.n', {n: number(res.saved), all: number(res.questions)});
			const body_ = h('div');
			replace(out, unreadable(res.unreadable), heading(t('trial')), h('p', title), res.against > 0 ? warn(t('trial.against.n', {n: res.against}), '', 'alert') : h('p.alert.good', icon('check'), h('div', t('trial.fine'))),
				body_, h('details', h('summary', t('trial.toml')), code(res.toml, 'TOML')));
			announce(title);
			list(body_, body, res);
			out.scrollIntoView({block: 'start'});
		} catch (err) {
			replace(out, failure(err));
		}
	}

	// list shows the questions of a trial in their groups, and reads further ones when a person wants them.
	function list(el, body, first) {
		const lists = {};
		const more = h('p.row');
		const add = (res) => {
			for (const j of res.list) {
				const group = groupOf(j);
				if (!lists[group]) {
					lists[group] = h('ul.list');
					more.before(h('h3', {class: group === 'against' ? 'bad' : ''}, t('trial.' + group)), lists[group]);
				}
				lists[group].append(judged(j, where.context));
			}
			replace(more, res.next && h('button', {onclick: async () => {
				try {
					add(await post('v1/policy/try', {...body, page: res.next}));
				} catch (err) {
					replace(more, failure(err));
				}
			}}, t('more')));
		};
		replace(el, more);
		add(first);
	}
	suggest();
}
