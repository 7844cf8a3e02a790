;; Hands over a text that lies outside of its memory.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $write (i32.const 1) (i32.const 65000) (i32.const 0x40000000))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
