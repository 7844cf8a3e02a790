;; Answers with the number of its calls, kept in its memory.
;; kind: health
;; answers
(component
  {{before}}
  (core module $code
    {{core}}
    (global $calls (mut i32) (i32.const 0))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 516) (global.get $calls))
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
