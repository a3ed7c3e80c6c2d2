// What a new playbook begins with: it can be run as it is.
export const EXAMPLE = `apiVersion: noetl.io/v10
kind: Playbook
metadata:
  name: hello
  path: examples/my_first
  description: Greets someone, and counts the letters.

workload:
  who: world

workflow:
  - step: greet
    tool:
      kind: python
      args: { who: "{{ workload.who }}" }
      code: |
        result = {"text": f"Hello, {who}!"}
    next:
      - step: say
        when: "{{ greet.text | length < 40 }}"
      - step: shorten

  - step: say
    tool: { kind: noop, message: "{{ greet.text }}" }

  - step: shorten
    tool: { kind: noop, message: "{{ greet.text[:40] }}" }
`;
