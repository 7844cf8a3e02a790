;; Logs with a level that there is not.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $write (i32.const 9) (i32.const 128) (i32.const 4))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
