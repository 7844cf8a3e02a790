;; The code of the reason is no text.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "\ff\fe")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const 600))
      (i32.store (i32.const 524) (i32.const 2))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
