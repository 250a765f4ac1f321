// This module lists the sessions of all projects, the last used first.
import {get, may} from './api.js';
import {h, icon, said, replace, loading, empty} from './dom.js';
import {t, ago} from './i18n.js';
import {live} from './live.js';
import {failure, unreadable, whoseChoice} from './now.js';
import {place, sessionLink} from './question.js';

function item(s) {
	const runs = live.runs.some((r) => r.session_id === s.id && r.state === 'running');
	const asks = [...live.questions.values()].some((q) => q.session_id === s.id);
	return h('li', h('a.item', {href: sessionLink({...s, session_id: s.id})},
		said('span.title', s.name || s.title || t('session.unnamed')),
		h('span.meta', asks ? h('span.chip.ask', t('session.asks')) : runs && h('span.chip.run', t('run.running')),
			place(s), said('span', s.provider), h('span', t('turns.n', {n: s.turns})), h('time', {datetime: s.used}, ago(s.used)))));
}

// sessions shows the view.
export function sessions(main) {
	const list = h('ul.list');
	const more = h('p.row');
	const alerts = h('div');
	const body = h('div', loading());
	const whose = whoseChoice(() => {
		shown.length = 0;
		replace(list);
		replace(body, loading());
		load();
	});
	replace(main, whose.el, may('ask') && h('p.row', {id: 'new'}, h('a.button.primary', {href: '#/new'}, icon('plus'), t('session.new'))), alerts, h('section', body, more));
	const shown = [];
	let newest = 0; // only the answer to the newest request is shown

	async function load(page) {
		const mine = ++newest;
		try {
			const res = await get('v1/sessions', {limit: 30, page, project: whose.project()});
			if (mine !== newest) return;
			shown.push(...res.sessions);
			list.append(...res.sessions.map(item));
			replace(alerts, unreadable(res.unreadable));
			replace(body, shown.length ? list : empty('sessions', t('sessions.none'), t('sessions.none.why')));
			replace(more, res.next && h('button', {onclick: () => load(res.next)}, t('more')));
		} catch (err) {
			if (mine === newest) replace(body, failure(err));
		}
	}
	load();
	return live.watch(() => replace(list, shown.map(item)));
}
