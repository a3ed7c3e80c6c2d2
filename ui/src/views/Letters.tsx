export function Letters() { return <h1>Dead letters</h1>; }
