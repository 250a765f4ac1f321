// This device: its name, what it may do, what it prefers, and how it leaves.
import * as device from './device.js';
import {get, me} from './api.js';
import {h, icon, said, replace, dialog} from './dom.js';
import {t, choose, language, languages} from './i18n.js';
import {thoughts} from './turn.js';
import {live} from './live.js';
import {start} from './app.js';

const rights = ['read', 'ask', 'approve', 'admin'];

async function signOut() {
	const said = await dialog(h('h2', t('signout')), h('p', t('signout.why')), h('pre.command', 'perlica web revoke ' + me().name),
		h('div.options', h('button', {value: 'back'}, t('go.back')), h('button', {value: 'yes', class: 'no'}, t('signout'))));
	if (said !== 'yes') return;
	live.stop();
	await device.forget();
	sessionStorage.clear();
	location.hash = '';
	location.reload();
}

function card(self) {
	return h('section.card', {id: 'self'}, h('p.meta', h('span.chip.good', t('device.this'))),
		h('h2', said('span', self.name)),
		h('dl.facts', h('dt', t('device.id')), h('dd.mono', self.id), h('dt', t('device.server')), h('dd', location.host)),
		h('ul.rights', rights.map((r) => {
			const has = self.rights.includes(r);
			return h('li', {class: 'remark ' + (has ? 'good' : '')}, icon(has ? 'check' : 'cross'), h('span', h('b', t('right.' + r)), ' ', h('span.unseen', has ? t('yes') : t('no')), t('right.' + r + '.why')));
		})), h('p.row', h('button', {class: 'danger', onclick: signOut}, t('signout'))));
}

// devices is the view.
export function devices(main) {
	const self = h('div', card(me()));
	const lang = h('select', {name: 'language', onchange: async () => {
		await choose(lang.value);
		start();
	}}, Object.entries(languages).map(([id, text]) => h('option', {value: id, lang: id, selected: id === language}, text)));
	const think = h('select', {name: 'thoughts', onchange: () => { thoughts.shown = think.value === 'shown'; }},
		[['hidden', t('thoughts.hidden')], ['shown', t('thoughts.shown')]].map(([v, text]) => h('option', {value: v, selected: (v === 'shown') === thoughts.shown}, text)));
	replace(main, self, h('section.card', h('h2', t('preferences')), h('div.filters', h('label', t('language'), lang), h('label', t('thoughts'), think))),
		h('section.card', h('h2', t('device.others')), h('p.dim', t('device.others.why')),
			h('pre.command', 'perlica web pair\nperlica web devices\nperlica web revoke NAME')));
	get('v1/self').then((s) => replace(self, card(s))).catch(() => {});
}
