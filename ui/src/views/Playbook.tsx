export function PlaybookPage() { return <h1>Playbook</h1>; }
