// The service worker stores the files of the page's first visit, so that the page opens without a network and says so.
// It never answers a request below v1. An unsent answer or input must fail visibly. A view that is loaded at its first
// use has nothing to show without a network.
const files = ['./', 'style.css', 'en.json', 'zh.json', 'icon.svg', 'manifest.webmanifest',
	'api.js', 'app.js', 'compose.js', 'device.js', 'devices.js', 'diff.js', 'dom.js', 'i18n.js', 'live.js', 'markdown.js', 'now.js', 'pair.js',
	'push.js', 'question.js', 'session.js', 'sessions.js', 'turn.js'];
const shell = 'shell';

addEventListener('install', (e) => e.waitUntil(caches.open(shell).then((c) => c.addAll(files)).then(() => skipWaiting())));
addEventListener('activate', (e) => e.waitUntil(clients.claim()));
addEventListener('fetch', (e) => {
	const scope = registration.scope;
	const url = e.request.url.split(/[?#]/)[0];
	const file = url.startsWith(scope) ? url.slice(scope.length) || './' : '';
	if (e.request.method === 'GET' && files.includes(file)) e.respondWith(fresh(file, e.request));
});

// fresh returns a file of the server. If the server cannot be reached, it returns the stored file.
async function fresh(file, request) {
	const kept = await caches.open(shell);
	try {
		const res = await fetch(request);
		if (res.ok) await kept.put(file, res.clone());
		return res;
	} catch {
		return kept.match(file);
	}
}

// A push is the object of a notification, or says only that a question waits. Each push shows a notification, and a tap
// on it opens the page.
addEventListener('push', (e) => e.waitUntil(notify(e.data)));
async function notify(data) {
	const m = read(data);
	const words = m.title ? '' : await (await caches.open(shell)).match('words');
	await registration.showNotification(m.title || 'Perlica', {body: words ? await words.text() : m.body || '', tag: m.tag || 'question',
		renotify: !m.tag, data: m.page || '#/now', icon: 'icon-192.png'});
}
function read(data) {
	try { return data.json(); } catch { return {}; }
}

addEventListener('notificationclick', (e) => {
	e.notification.close();
	e.waitUntil(open(e.notification.data));
});
async function open(place) {
	const address = registration.scope + place;
	const [page] = await clients.matchAll({type: 'window'});
	if (!page) return clients.openWindow(address);
	await page.navigate(address);
	return page.focus();
}
