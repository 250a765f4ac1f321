async () => {
	const {violations} = await axe.run(document, {resultTypes: ['violations']});
	return violations.filter((v) => v.impact !== 'minor').flatMap((v) =>
		v.nodes.map((n) => 'axe ' + v.id + ' (' + v.impact + '): ' + n.target.join(' ') + ' ' + n.html.slice(0, 100)));
}
