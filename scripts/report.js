// What a browser makes of a page of charts, told to the page that it is shown in.
addEventListener("load", () => {
    const faults = [];
    document.querySelectorAll("details").forEach(part => part.open = true);
    const beyond = document.documentElement.scrollWidth - innerWidth;
    if (beyond > 0) faults.push(`${beyond} pixels too wide`);
    const charts = document.querySelectorAll("figure svg[role]");
    for (const svg of charts) {
        const frame = svg.getBoundingClientRect();
        const scale = frame.width / svg.viewBox.baseVal.width;
        const texts = [...svg.querySelectorAll("text")].map(text => ({
            words: text.textContent.trim(),
            size: parseFloat(getComputedStyle(text).fontSize) * scale,
            box: text.getBoundingClientRect(),
        }));
        for (const {words, size, box} of texts) {
            if (size < 10) faults.push(`"${words}" is ${size.toFixed(1)} pixels high`);
            const isCut = box.left < frame.left - 2 || box.right > frame.right + 2
                || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
            if (isCut) faults.push(`"${words}" is cut off`);
        }
        texts.forEach((one, at) => texts.slice(at + 1).forEach(other => {
            const across = Math.min(one.box.right, other.box.right)
                - Math.max(one.box.left, other.box.left);
            const down = Math.min(one.box.bottom, other.box.bottom)
                - Math.max(one.box.top, other.box.top);
            // A line of text is higher than its letters.
            if (across > 1 && down > 4) faults.push(`"${one.words}" overlaps "${other.words}"`);
        }));
    }
    const light = getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)";
    const seen = `${innerWidth} pixels, ${charts.length} charts, ${light ? "light" : "dark"}`;
    parent.postMessage(`${seen}: ${faults.join("; ") || "well"}`, "*");
});
