;; The code of the reason lies outside of its memory.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const -4))
      (i32.store (i32.const 524) (i32.const 4))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
