() => {
	const wrong = [];
	const name = (el) => el.tagName.toLowerCase() + '.' + el.className + ' ' + JSON.stringify((el.textContent || '').trim().slice(0, 30));
	const seen = (el) => {
		const box = el.getBoundingClientRect();
		const style = getComputedStyle(el);
		return box.width > 1 && box.height > 1 && style.visibility === 'visible' && !el.closest('[aria-hidden=true], .unseen, .skip') && el.checkVisibility();
	};
	const colour = (text) => {
		const n = (text.match(/[\d.]+/g) || []).map(Number);
		return /^color\(srgb/.test(text) ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1];
	};
	const behind = (el) => {
		const layers = [];
		for (let e = el; e; e = e.parentElement) {
			const c = colour(getComputedStyle(e).backgroundColor);
			if (c[3] > 0) layers.push(c);
			if (c[3] === 1) break;
		}
		return layers.reverse().reduce((under, c) => [0, 1, 2].map((i) => c[i] * c[3] + under[i] * (1 - c[3])), [255, 255, 255]);
	};
	const luminance = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

	// Content that is wider than the screen must scroll in a separate region.
	if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page scrolls sideways: ' + document.documentElement.scrollWidth + ' px');
	// Text has a contrast of 4.5, large text of 3 (WCAG AA).
	for (const el of document.body.querySelectorAll('*')) {
		const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
		if (!own || !seen(el) || el.closest('svg')) continue;
		const style = getComputedStyle(el);
		const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700;
		const ratio = contrast(colour(style.color), behind(el));
		if (ratio < (large ? 3 : 4.5)) wrong.push('contrast ' + ratio.toFixed(2) + ': ' + name(el));
		if (parseFloat(style.fontSize) < 12) wrong.push('small text: ' + name(el));
	}
	for (const el of document.querySelectorAll('button, a[href], summary, select, textarea, input:not([type=file])')) {
		if (!seen(el)) continue;
		// A button is 44 px high and wide. A link within a text has the height of the text.
		const box = el.getBoundingClientRect();
		const inText = el.tagName === 'A' && el.closest('.markdown, .outcome');
		if (!inText && (box.height < 43.5 || box.width < 43.5)) wrong.push('tap target of ' + Math.round(box.width) + '×' + Math.round(box.height) + ': ' + name(el));
		// Each control has a name.
		const label = el.getAttribute('aria-label') || el.textContent.trim() || el.labels && [...el.labels].map((l) => l.textContent.trim()).join('');
		if (!label) wrong.push('no label: ' + name(el));
	}
	for (const el of document.querySelectorAll('svg')) if (!el.getAttribute('aria-hidden') && !el.getAttribute('aria-label')) wrong.push('a drawing without a name');
	const ids = [...document.querySelectorAll('[id]')].map((el) => el.id);
	for (const id of new Set(ids)) if (ids.filter((x) => x === id).length > 1) wrong.push('two elements are ' + id);
	for (const el of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(el.getAttribute('aria-labelledby'))) wrong.push('a label that is not there: ' + name(el));
	if (document.querySelectorAll('h1').length !== 1 || !document.querySelector('main') || !document.documentElement.lang) wrong.push('no title, no main part or no language');
	return [...new Set(wrong)];
}
