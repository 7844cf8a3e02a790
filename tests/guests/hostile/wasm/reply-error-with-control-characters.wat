;; An error of its own whose text would move the cursor of a terminal.
;; kind: health
;; expect: guest-error
;; says: [2Jgone
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "\1b[2Jgone")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 512) (i32.const 1))
      (i32.store8 (i32.const 516) (i32.const 2))
      (i32.store (i32.const 520) (i32.const 600))
      (i32.store (i32.const 524) (i32.const 8))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
