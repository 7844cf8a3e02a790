;; A result that is neither of the two.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 512) (i32.const 7))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
