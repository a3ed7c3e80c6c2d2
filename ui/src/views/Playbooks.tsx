export function Playbooks() { return <h1>Playbooks</h1>; }
